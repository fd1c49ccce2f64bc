import { z } from 'zod';
import { type FleetParts, readFleet } from '../shared/fleet.ts';
import { check } from './check.ts';
import type { Call, Reply } from './http.ts';

const noParameters = z.strictObject({});

/** GET /fleet: who holds how much, and what nobody holds. */
export function showFleet(parts: FleetParts): (call: Call) => Promise<Reply> {
  return async ({ query }) => {
    check(noParameters, query);
    return { status: 200, body: await readFleet(parts) };
  };
}
