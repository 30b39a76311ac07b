import { appendFileSync } from 'node:fs';
import { trace } from '@opentelemetry/api';

// Loaded before a coordinator (`node --import`): the least that makes spans real, each written to WRIT_TEST_SPANS_FILE
// with all that was said about it.

const file = process.env.WRIT_TEST_SPANS_FILE;

class RecordedSpan {
  #told;
  constructor(name, options) {
    this.#told = { name, ...options };
  }
  spanContext() {
    return { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 };
  }
  setAttribute(key, value) {
    return this.setAttributes({ [key]: value });
  }
  setAttributes(attributes) {
    this.#told.attributes = { ...this.#told.attributes, ...attributes };
    return this;
  }
  addEvent(...event) {
    this.#told.events = [...(this.#told.events ?? []), event];
    return this;
  }
  addLink = () => this;
  addLinks = () => this;
  setStatus(status) {
    this.#told.status = status;
    return this;
  }
  updateName(name) {
    this.#told.name = name;
    return this;
  }
  end() {
    appendFileSync(file, `${JSON.stringify(this.#told)}\n`);
  }
  isRecording = () => true;
  recordException(error) {
    this.addEvent('exception', String(error));
  }
}

trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan: (name, options) => new RecordedSpan(name, options) }) });
