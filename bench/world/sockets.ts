/** Sockets to a source that is always there: they open after a while, and bring a message every so often. */
import pLimit from 'p-limit';
import type { OpenSocket, SocketPlan } from '../../worker/socket.ts';
import type { Host, Time } from './time.ts';

export type SourceTraffic = {
  /** From the dial to the open socket. */
  connectMs: number;
  /** undefined: the source says nothing. */
  messages?: {
    /** Resolves when they begin to come. */
    begun: Promise<void>;
    /** Whether they come no more. */
    over: () => boolean;
    everyMs: number;
    bytes: number;
  };
};

type Messages = NonNullable<SourceTraffic['messages']>;

export function socketsTo(
  traffic: SourceTraffic,
  time: Time,
  host: Host,
  dialsAtOnce: number,
  random: () => number,
): OpenSocket {
  const dials = pLimit(dialsAtOnce);
  const clock = time.clockOf(host);

  return (plan) => {
    let reading = true;
    void dials(async () => {
      await clock.sleep(traffic.connectMs * (0.5 + random()));
      if (!reading) return;
      plan.onStatus({ do: 'report', status: 'OPEN' });
      if (traffic.messages) void stream(plan, traffic.messages, () => reading);
    });
    const stop = () => {
      reading = false;
    };
    return { resume() {}, stopReading: stop, terminate: stop, close: () => Promise.resolve(stop()) };
  };

  /** Messages of different connections fall at different times. */
  async function stream(
    plan: SocketPlan,
    { begun, over, everyMs, bytes }: Messages,
    reading: () => boolean,
  ): Promise<void> {
    await begun;
    await clock.sleep(random() * everyMs);
    for (let seq = 1; reading() && !over(); seq++) {
      plan.onFrame(messageOf(seq, bytes), false);
      await clock.sleep(everyMs);
    }
  }
}

function messageOf(seq: number, bytes: number): Buffer {
  const frame = JSON.stringify({ seq, text: '' });
  return Buffer.from(JSON.stringify({ seq, text: 'x'.repeat(Math.max(0, bytes - frame.length)) }));
}
