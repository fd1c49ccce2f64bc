import { isUtf8 } from 'node:buffer';
import { pkOf } from '../shared/connection.ts';
import type { StoredFrame } from '../shared/tables/stored-messages.ts';
import { isoTime } from '../shared/view.ts';
import type { Target } from './target.ts';
import { dim, oneLine, yellow } from './text.ts';

export type MessageView = {
  key: string;
  at: string | null;
  worker_id: string;
  epoch: number;
  complete: boolean;
  bytes: number;
  /** text: as it came. base64: bytes that are no text. */
  encoding: 'text' | 'base64';
  data: string;
};

/** The newest messages of a connection, oldest first, each as its source sent it. */
export async function readMessages({ messages }: Target, id: string, most: number): Promise<MessageView[]> {
  return (await messages.newest(pkOf(id), most)).map(messageView);
}

export function messageView({ key, data, binary, complete, timestampMs, workerId, epoch }: StoredFrame): MessageView {
  const text = binary ? textIn(data) : data.toString('utf8');
  return {
    key,
    at: isoTime(timestampMs),
    worker_id: workerId,
    epoch,
    complete,
    bytes: data.length,
    ...(text === undefined
      ? { encoding: 'base64' as const, data: data.toString('base64') }
      : { encoding: 'text' as const, data: text }),
  };
}

export function messagesText(views: MessageView[], longest: number): string {
  return views
    .map((view) => {
      const what = view.encoding === 'text' ? oneLine(view.data, longest) : dim(`(${view.bytes} bytes, not text)`);
      return `  ${view.key}  ${dim(view.at ?? '')}  ${what}${view.complete ? '' : yellow(' (a part is missing)')}`;
    })
    .join('\n');
}

/** Many sources send text in binary frames. @returns undefined when it isn't UTF-8, or holds what no text does */
function textIn(data: Buffer): string | undefined {
  if (!isUtf8(data)) return undefined;
  const text = data.toString('utf8');
  return /[^\P{Cc}\t\n\r]/u.test(text) ? undefined : text;
}
