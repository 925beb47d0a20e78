import type { Client } from "pg";

/** What can never be, counted in SQL. Every query must come back empty. */
const NEVER: { readonly [name: string]: string } = {
  "more leases than slots": `
    SELECT h.host, count(*) FROM slotkeeper_host h JOIN upstream_slot_pool p ON p.hostname_pattern = h.host
    WHERE p.status = 'locked' AND p.ends_at > slotkeeper_now() GROUP BY h.host, h.policy
    HAVING count(*) > (h.policy).slots`,
  "more leases of a bucket than its limit": `
    SELECT h.host, p.ip_hash, count(*) FROM slotkeeper_host h JOIN upstream_slot_pool p ON p.hostname_pattern = h.host
    WHERE p.status = 'locked' AND p.ip_hash <> '' AND p.ends_at > slotkeeper_now() GROUP BY h.host, h.policy, p.ip_hash
    HAVING count(*) > (h.policy).slots_per_bucket`,
  "more waiters than the pool has places": `
    SELECT h.host, count(*) FROM slotkeeper_host h JOIN slotkeeper_waiter w USING (host) GROUP BY h.host, h.policy
    HAVING count(*) > (h.policy).waiters`,
  "more waiters of a bucket than it may have": `
    SELECT h.host, w.bucket, count(*) FROM slotkeeper_host h JOIN slotkeeper_waiter w USING (host)
    GROUP BY h.host, h.policy, w.bucket HAVING count(*) > (h.policy).waiters_per_bucket`,
  "more probes than a half-open breaker allows": `
    SELECT h.host, count(*) FROM slotkeeper_host h JOIN upstream_slot_pool p ON p.hostname_pattern = h.host
    WHERE p.status = 'locked' AND p.is_probe AND p.ends_at > slotkeeper_now() GROUP BY h.host, h.policy
    HAVING count(*) > (h.policy).breaker_probes`,
  "a fence or a token given twice": `
    SELECT hostname_pattern, fence FROM upstream_slot_pool WHERE status = 'locked'
    GROUP BY hostname_pattern, fence HAVING count(*) > 1
    UNION ALL SELECT token, 0 FROM upstream_slot_pool WHERE status = 'locked' GROUP BY token HAVING count(*) > 1`,
  "a session with two leases": `
    SELECT hostname_pattern, session FROM upstream_slot_pool WHERE status = 'locked' AND session IS NOT NULL
    GROUP BY hostname_pattern, session HAVING count(*) > 1`,
};

/** Sums that must agree whenever nobody is in the middle of something: T1, T2 of the ledger. */
const SUMS: { readonly [name: string]: string } = {
  "slots in hand": `
    SELECT h.host FROM slotkeeper_host h WHERE (h.ledger).in_flight <> (
      SELECT count(*) FROM upstream_slot_pool p WHERE p.hostname_pattern = h.host AND p.status = 'locked')
    OR (h.ledger).in_flight <> (SELECT coalesce(sum(in_flight), 0) FROM slotkeeper_account a WHERE a.host = h.host)`,
  "slots in hand of each bucket": `
    SELECT a.host, a.bucket FROM slotkeeper_account a WHERE a.in_flight <> (
      SELECT count(*) FROM upstream_slot_pool p
      WHERE p.hostname_pattern = a.host AND p.ip_hash = a.bucket AND p.status = 'locked')`,
  waiters: `
    SELECT h.host FROM slotkeeper_host h WHERE (h.ledger).waiting <> (SELECT count(*) FROM slotkeeper_waiter w WHERE w.host = h.host)
    OR (h.ledger).waiting <> (SELECT coalesce(sum(waiting), 0) FROM slotkeeper_account a WHERE a.host = h.host)`,
  weights: `
    SELECT h.host FROM slotkeeper_host h LEFT JOIN slotkeeper_account a ON a.host = h.host AND a.in_flight + a.waiting > 0
    GROUP BY h.host, h.ledger
    HAVING abs((h.ledger).active_weight - coalesce(sum(a.weight), 0)) > 1e-6
      OR abs((h.ledger).demand - coalesce(sum(a.demand), 0)) > 1e-6
      OR abs((h.ledger).contending_weight - coalesce(sum(a.weight) FILTER (WHERE a.contends), 0)) > 1e-6
      OR (h.ledger).contending_held <> coalesce(sum(a.in_flight) FILTER (WHERE a.contends), 0)`,
  probes: `
    SELECT h.host FROM slotkeeper_host h WHERE h.probes <> (
      SELECT count(*) FROM upstream_slot_pool p WHERE p.hostname_pattern = h.host AND p.status = 'locked' AND p.is_probe)`,
};

/** What is wrong right now, in the eyes of somebody who reads the tables in one snapshot. */
export async function violations(client: Client): Promise<string[]> {
  return found(client, NEVER);
}

/** Sums that do not agree. A snapshot never shows the middle of a call. */
export async function brokenSums(client: Client): Promise<string[]> {
  return found(client, SUMS);
}

async function found(client: Client, queries: { readonly [name: string]: string }): Promise<string[]> {
  const wrong: string[] = [];
  for (const [name, query] of Object.entries(queries)) {
    const { rows } = await client.query(query);
    for (const row of rows) wrong.push(`${name}: ${JSON.stringify(row)}`);
  }
  return wrong;
}
