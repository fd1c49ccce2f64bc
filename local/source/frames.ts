/**
 * WebSocket frames of a source, built by hand: the source must cost so little CPU that what a bench measures is the worker. The part of
 * the JSON text that never changes is kept per connection, and one buffer per message goes to the socket as it is.
 */

const OPCODE_TEXT = 0x81;
const OPCODE_BINARY = 0x82;
const LARGE_FRAME = 65_536;

export class FrameBuilder {
  readonly #suffix: string;
  readonly #ascii: boolean;

  /** @param sizeBytes length of the message's `data` */
  constructor(id: string, sizeBytes: number) {
    this.#suffix = `,"id":${JSON.stringify(id)},"data":"${'x'.repeat(sizeBytes)}"}`;
    this.#ascii = Buffer.byteLength(this.#suffix) === this.#suffix.length;
  }

  build(seq: number, atMs: number, binary: boolean): Buffer {
    const text = `{"seq":${seq},"at":${atMs}${this.#suffix}`;
    const length = this.#ascii ? text.length : Buffer.byteLength(text);
    const headerLength = length < 126 ? 2 : length < LARGE_FRAME ? 4 : 10;
    const frame = Buffer.allocUnsafe(headerLength + length);
    frame[0] = binary ? OPCODE_BINARY : OPCODE_TEXT;
    if (headerLength === 2) {
      frame[1] = length;
    } else if (headerLength === 4) {
      frame[1] = 126;
      frame.writeUInt16BE(length, 2);
    } else {
      frame[1] = 127;
      frame.writeBigUInt64BE(BigInt(length), 2);
    }
    if (this.#ascii) frame.write(text, headerLength, 'latin1');
    else frame.write(text, headerLength, 'utf8');
    return frame;
  }
}
