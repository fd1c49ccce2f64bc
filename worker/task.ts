import { z } from 'zod';
import type { Clock } from '../shared/clock.ts';

const withinMs = 5000;

const taskMetadata = z.object({ TaskARN: z.string() });

/**
 * The ARN of the Fargate task that this process runs in: by it the end of the task is matched to this worker.
 * Source: Amazon ECS task metadata endpoint, version 4.
 * @param metadataUrl ECS_CONTAINER_METADATA_URI_V4; undefined outside ECS
 */
export async function readTaskArn(metadataUrl: string | undefined, clock: Clock): Promise<string | undefined> {
  if (metadataUrl === undefined) return undefined;
  const tooLong = new AbortController();
  const deadline = clock.timer(withinMs, () => tooLong.abort(new Error(`no task metadata within ${withinMs} ms`)));
  const answer = await fetch(`${metadataUrl}/task`, { signal: tooLong.signal });
  deadline.cancel();
  return taskMetadata.parse(await answer.json()).TaskARN;
}
