"""The bucket of a client by its address."""

import ipaddress


def bucket_of_ip(ip: str, v4: int = 32, v6: int = 60) -> str:
    """Return the network of the address: ``203.0.113.4/32``, ``2001:db8:0:1230::/60``.

    ``v4`` and ``v6`` are the numbers of bits that identify a client. An IPv4 address mapped into IPv6 counts as IPv4.
    Raises ``ValueError`` if ``ip`` is not an IP address.
    """
    # A zone such as `%eth0` is local and is dropped.
    address = ipaddress.ip_address(ip.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    bits = v4 if address.version == 4 else v6
    return str(ipaddress.ip_network((address, bits), strict=False))
