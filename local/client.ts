/** The API and the source of the local system, as their callers use them. For the demo, the end-to-end tests and the benches. */
import type { FullReport } from './source/server.ts';

export interface Answer {
  status: number;
  body: unknown;
}

export class ApiClient {
  readonly #url: string;
  readonly #key: string;

  constructor(url: string, key: string) {
    this.#url = url;
    this.#key = key;
  }

  /** @param wsUrl may contain `{last_seq}`, as source `numbered` wants it */
  start(id: string, wsUrl: string, more: Record<string, unknown> = {}): Promise<Answer> {
    const source = { name: 'numbered' };
    return this.post('/events', { event_type: 'START', connection_id: id, ws_url: wsUrl, source, ...more });
  }

  stop(id: string): Promise<Answer> {
    return this.post('/events', { event_type: 'STOP', connection_id: id });
  }

  connection(id: string): Promise<Answer> {
    return this.get(`/connections/${encodeURIComponent(id)}`);
  }

  fleet(): Promise<Answer> {
    return this.get('/fleet');
  }

  get(path: string): Promise<Answer> {
    return this.#fetch(path, {});
  }

  post(path: string, body: unknown): Promise<Answer> {
    return this.#fetch(path, { method: 'POST', body: JSON.stringify(body) });
  }

  async #fetch(path: string, init: RequestInit): Promise<Answer> {
    const headers = { 'x-api-key': this.#key, 'content-type': 'application/json' };
    const response = await fetch(`${this.#url}${path}`, { ...init, headers });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : (JSON.parse(text) as unknown) };
  }
}

export class SourceClient {
  readonly #url: string;

  /** @param wsUrl the source's `ws://127.0.0.1:PORT` */
  constructor(wsUrl: string) {
    this.#url = wsUrl.replace('ws:', 'http:');
  }

  async report(): Promise<FullReport> {
    const response = await fetch(`${this.#url}/report`);
    if (!response.ok) throw new Error(`the source's report: ${response.status}`);
    return (await response.json()) as FullReport;
  }

  /** @param control see source/faults.ts */
  async control(control: Record<string, unknown>): Promise<void> {
    const response = await fetch(`${this.#url}/control`, { method: 'POST', body: JSON.stringify(control) });
    if (!response.ok) throw new Error(`the source refused ${JSON.stringify(control)}: ${await response.text()}`);
  }
}
