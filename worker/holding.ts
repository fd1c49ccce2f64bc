import type { Connection } from '../shared/connection.ts';
import { describe } from '../shared/errors.ts';
import { profileOf } from '../sources/index.ts';
import type { Context } from './context.ts';
import type { Ending } from './endings.ts';
import type { Lane } from './lane.ts';
import { type Lease, logged } from './lease.ts';
import { type Arrival, Opening } from './opening.ts';
import { recoverPosition } from './position.ts';
import { release, wakeUp } from './release.ts';
import type { SocketEnd, SocketStatus, SourceSocket } from './socket.ts';
import { StatusWriter } from './status.ts';

/**
 * One connection that this worker owns: lease, socket, lane under one scope, ending with one reason.
 * Three things go on together (renewing the lease, receiving, noticing that it isn't wanted), and the first to end ends all.
 */
export class Holding {
  readonly lease: Lease;
  /** Monotonic ms. */
  readonly sinceMs: number;
  /** Resolves, and never rejects, when nothing of it is left: no socket, no timer, no write on its way. */
  readonly ended: Promise<Ending>;
  readonly #context: Context;
  readonly #status: StatusWriter;
  readonly #opening: Opening;
  readonly #ending = Promise.withResolvers<Ending>();
  #connection: Connection;
  #socket: SourceSocket | undefined;
  #lane: Lane | undefined;
  #over = false;
  #givingBack = false;

  constructor(context: Context, connection: Connection, lease: Lease, arrival: Arrival = {}) {
    this.#context = context;
    this.#connection = connection;
    this.lease = lease;
    this.sinceMs = context.clock.monotonic();
    this.#status = new StatusWriter(context, lease, { status: connection.status, attempts: connection.attempts });
    this.#opening = new Opening(context, arrival);
    lease.signal.addEventListener('abort', () => this.#leaseLost(), { once: true });
    this.ended = this.#live();
  }

  get pk(): string {
    return this.lease.claim.pk;
  }

  get generation(): number {
    return this.#connection.generation;
  }

  /** It has a reason to end, and is cleaning up. */
  get ending(): boolean {
    return this.#over;
  }

  /** All that was read is stored or given up, and the lease is being released: that the item says otherwise is no news. */
  get givingBack(): boolean {
    return this.#givingBack;
  }

  /** Ends it, unless something else did before. */
  end(ending: Ending): void {
    if (this.#over) return;
    this.#over = true;
    this.#socket?.stopReading();
    this.#opening.failed(ending.why);
    this.#ending.resolve(ending);
  }

  /** Something else is wanted now: dial anew under the same lease. */
  async change(connection: Connection): Promise<void> {
    if (this.#over || connection.generation <= this.#connection.generation) return;
    // Another kind of source has positions of another kind: whoever takes it finds where to resume.
    if (connection.source.name !== this.#connection.source.name) return this.end({ why: 'drained' });
    this.#connection = connection;
    const before = this.#socket;
    await before?.close();
    // The first dial of all may have begun meanwhile, and it knew already what is wanted now.
    if (this.#socket !== before) return;
    this.#socket = undefined;
    this.#dial();
  }

  async #live(): Promise<Ending> {
    const { log } = this.#context;
    const renewing = new AbortController();
    const renewed = this.lease.keep(() => this.#lane?.position, renewing.signal);
    const starting = new AbortController();
    const started = this.#start(starting.signal).catch((fault: unknown) => this.#broken(fault));
    const ending = await this.#ending.promise;
    starting.abort();

    // At once, whatever storing takes: nothing is read from it any more.
    const closed = this.#socket?.close();
    if (this.lease.valid()) await this.#flush();
    // Renewals go on until here: storing what was read may take a while.
    renewing.abort();
    await Promise.all([renewed, this.#status.close()]);
    this.#lane?.close();
    this.#givingBack = true;
    const { generation } = this.#connection;
    const leaving = { status: this.#status.current, generation, position: this.#lane?.position };
    const wake = await release(this.#context, this.lease, ending, leaving);
    // A lease that was given back can't be lost.
    this.lease.close();
    await closed;
    // Last, so that whoever is woken up finds the old socket gone.
    if (wake) await wakeUp(this.#context, this.lease);
    await started;
    log.info('holding.ended', { ...logged(this.lease.claim), ...ending });
    return ending;
  }

  /** Finds where to resume, then dials. */
  async #start(over: AbortSignal): Promise<void> {
    const position = await recoverPosition(this.#context, this.#connection, this.lease, over);
    if (this.#over || !this.lease.valid()) return;
    const { claim } = this.lease;
    const mayWrite = () => this.lease.valid();
    this.#lane = this.#context.sink.open({
      pk: claim.pk,
      workerId: claim.owner,
      epoch: claim.epoch,
      position,
      mayWrite,
    });
    this.#lane.onRoom = () => this.#socket?.resume();
    this.#lane.onFailure = (fault) =>
      this.end({ why: 'failed', reason: `a message can't be stored: ${describe(fault)}`, attempts: 0 });
    this.#dial();
  }

  /** A mistake of ours, not of the source: let another worker (and perhaps another revision) try, but not at once. */
  #broken(fault: unknown): void {
    this.#context.log.error('holding.broken', { ...logged(this.lease.claim), fault: describe(fault) });
    const waitMs = this.#context.config.socket.backoff.capMs;
    this.end({ why: 'exhausted', reason: describe(fault), attempts: this.#connection.attempts + 1, waitMs });
  }

  #dial(): void {
    const lane = this.#lane;
    if (this.#over || !lane) return;
    const { wsUrl, source, attempts } = this.#connection;
    const profile = profileOf(source.name);
    if (!profile) {
      this.end({ why: 'failed', reason: `this revision knows no source named ${source.name}`, attempts: 0 });
      return;
    }
    // Checked here, since a throw in a socket's callback would end the process, and the next worker's after it.
    const { success, data: parameters } = profile.parameters.safeParse(source.parameters ?? {});
    if (!success) {
      this.end({
        why: 'failed',
        reason: `this revision can't use the parameters of source ${source.name}`,
        attempts: 0,
      });
      return;
    }
    this.#opening.dialling();
    this.#socket = this.#context.openSocket({
      mayDial: () => this.lease.valid(),
      url: () => profile.url(wsUrl, lane.received),
      onClose: (code) => profile.onClose(code, parameters),
      onRefused: (httpStatus) => profile.onRefused(httpStatus, parameters),
      attempts,
      onFrame: (data, binary) =>
        this.#receive(lane, data, binary, profile.resumes ? profile.seqOf(data) : undefined, profile.resumes),
      onOpen: () => this.#opening.opened(),
      onStatus: (status) => this.#report(status),
      onEnd: (end) => this.end(endingOf(end)),
    });
  }

  /** @returns whether the socket shall pause */
  #receive(lane: Lane, data: Buffer, binary: boolean, seq: string | undefined, numbers: boolean): boolean {
    const { clock, metrics } = this.#context;
    // A frozen process reads what was waiting in its sockets before any timer tells it that its lease is over.
    if (this.#over || !this.lease.valid()) return false;
    if (lane.push({ data, binary, seq, numbers, atMs: clock.now() }) === 'repeated') metrics.count('MessagesRepeated');
    if (numbers && seq === undefined) metrics.count('MessagesUnnumbered');
    const full = lane.full();
    if (full) metrics.count('SocketsPaused');
    return full;
  }

  #report(status: SocketStatus): void {
    const { clock, log, metrics } = this.#context;
    if (status.status === 'OPEN') {
      this.#status.set({ status: 'OPEN', attempts: 0, openedAtMs: clock.now() });
      log.info('socket.opened', logged(this.lease.claim));
      return;
    }
    metrics.count('Redials');
    this.#opening.failed(status.reason);
    log.warn('socket.failed', { ...logged(this.lease.claim), reason: status.reason, attempts: status.attempts });
    this.#status.set({ status: 'RETRYING', reason: status.reason, attempts: status.attempts });
  }

  /** In the same turn: nothing is read or written any more. */
  #leaseLost(): void {
    const { log, metrics } = this.#context;
    const loss = this.lease.loss ?? 'expired';
    // Fenced, it is the worker's loss, and counted there.
    if (loss !== 'fenced') metrics.count(loss === 'expired' ? 'LeasesExpired' : 'LeasesLost');
    log.warn('lease.lost', { ...logged(this.lease.claim), loss });
    this.#lane?.close();
    this.#socket?.terminate();
    this.end({ why: 'lost', loss });
  }

  /** Stores what was read, for as long as the lease lasts. */
  async #flush(): Promise<void> {
    const lost = new Promise<void>((resolve) =>
      this.lease.signal.addEventListener('abort', () => resolve(), { once: true }),
    );
    await Promise.race([this.#lane?.flush(), lost]);
  }
}

function endingOf(end: SocketEnd): Ending {
  const { reason, attempts } = end;
  return end.end === 'failed'
    ? { why: 'failed', reason, attempts }
    : { why: 'exhausted', reason, attempts, waitMs: end.waitMs };
}
