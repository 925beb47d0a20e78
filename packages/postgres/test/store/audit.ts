import type { Client } from "pg";

/** States that no snapshot of the tables may show. Every query must return nothing. */
const NEVER: { readonly [name: string]: string } = {
  "more slots occupied than the limit": `
    SELECT h.host, slotkeeper_occupied(h.host, greatest(h.last_now, slotkeeper_now()), h.offers_until) AS occupied FROM slotkeeper_host h
    WHERE slotkeeper_occupied(h.host, greatest(h.last_now, slotkeeper_now()), h.offers_until) > h.slots`,
  "a fence given twice": `
    SELECT hostname_pattern, fence FROM upstream_slot_pool WHERE status = 'locked' GROUP BY 1, 2 HAVING count(*) > 1`,
  "a token given twice": `
    SELECT hostname_pattern, token FROM upstream_slot_pool WHERE status = 'locked' GROUP BY 1, 2 HAVING count(*) > 1`,
  "a fence above the host's": `
    SELECT h.host, s.fence FROM slotkeeper_host h JOIN upstream_slot_pool s ON s.hostname_pattern = h.host
    WHERE s.status = 'locked' AND s.fence > h.fence`,
  "a session with two leases": `
    SELECT hostname_pattern, session FROM upstream_slot_pool WHERE status = 'locked' GROUP BY 1, 2 HAVING count(*) > 1`,
  "a lease or record of an unknown host": `
    SELECT hostname_pattern FROM upstream_slot_pool WHERE status = 'locked' AND hostname_pattern NOT IN (SELECT host FROM slotkeeper_host)
    UNION ALL SELECT host FROM slotkeeper_record WHERE host NOT IN (SELECT host FROM slotkeeper_host)
    UNION ALL SELECT host FROM slotkeeper_ring WHERE host NOT IN (SELECT host FROM slotkeeper_host)`,
  "a tag that is not the last commit's": `
    SELECT h.host FROM slotkeeper_host h LEFT JOIN slotkeeper_ring r ON r.host = h.host AND r.place = slotkeeper_number(h.tag) % 64
    WHERE r.tag IS DISTINCT FROM h.tag`,
  "a commit on another base than the one before it": `
    SELECT a.host FROM slotkeeper_ring a JOIN slotkeeper_ring b ON b.host = a.host AND slotkeeper_number(b.tag) = slotkeeper_number(a.tag) + 1
    WHERE b.base IS DISTINCT FROM a.tag`,
  "a gap in a ring": `
    SELECT h.host FROM slotkeeper_host h JOIN slotkeeper_ring r USING (host) GROUP BY h.host, h.tag
    HAVING count(*) <> least(slotkeeper_number(h.tag), 64) OR min(slotkeeper_number(r.tag)) <> greatest(slotkeeper_number(h.tag) - 63, 1)`,
  "a column that differs from the head": `
    SELECT host FROM slotkeeper_host WHERE fence <> (head ->> 'fence')::bigint OR last_now <> (head ->> 'now')::double precision
    OR slots <> coalesce((head ->> 'slots')::double precision, 'Infinity')`,
  "a breaker that differs in the table": `
    SELECT h.host FROM slotkeeper_host h LEFT JOIN "THROTTLE_PROTECTION" t ON t."HOSTNAME_HASH" = h.host
    WHERE (h.head #>> '{breaker,openedAt}')::double precision IS DISTINCT FROM t.opened_at`,
};

export type Violation = keyof typeof NEVER;

/** The names of the rules that are broken now. Each is read in one snapshot. */
export async function violations(client: Client): Promise<string[]> {
  const wrong: string[] = [];
  for (const [name, query] of Object.entries(NEVER)) {
    const { rows } = await client.query(query);
    if (rows.length > 0) wrong.push(name);
  }
  return wrong;
}

/** For each violation, a statement that causes it on the host `h`, which has two live leases and four commits. */
export const PLANTED: { readonly [name in Violation]: string } = {
  "more slots occupied than the limit": "UPDATE slotkeeper_host SET slots = 1 WHERE host = 'h'",
  "a fence given twice": `UPDATE upstream_slot_pool SET fence = (SELECT max(fence) FROM upstream_slot_pool) WHERE hostname_pattern = 'h' AND status = 'locked'`,
  "a token given twice": "UPDATE upstream_slot_pool SET token = 'x' WHERE hostname_pattern = 'h' AND status = 'locked'",
  "a fence above the host's": "UPDATE slotkeeper_host SET fence = 1 WHERE host = 'h'",
  "a session with two leases":
    "UPDATE upstream_slot_pool SET session = 'x' WHERE hostname_pattern = 'h' AND status = 'locked'",
  "a lease or record of an unknown host": "INSERT INTO slotkeeper_record VALUES ('gone', 'account', 'b', '{}')",
  "a tag that is not the last commit's": "UPDATE slotkeeper_host SET tag = '4.x' WHERE host = 'h'",
  "a commit on another base than the one before it":
    "UPDATE slotkeeper_ring SET base = 'x' WHERE host = 'h' AND place = 2",
  "a gap in a ring": "DELETE FROM slotkeeper_ring WHERE host = 'h' AND place = 2",
  "a column that differs from the head": "UPDATE slotkeeper_host SET last_now = last_now + 1 WHERE host = 'h'",
  "a breaker that differs in the table": `UPDATE slotkeeper_host SET head = jsonb_set(head::jsonb, '{breaker,openedAt}', '5') WHERE host = 'h'`,
};
