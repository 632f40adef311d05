import type { CallToolResult, ReadResourceResult, ResourceTemplateType } from '@modelcontextprotocol/server'
import { BYTES_PER_TOKEN } from '../../../kit/size.js'
import type { ResourceSource } from './resource-source.js'

/** Results that are kept for reading. Beyond it the caller with the most loses its oldest. */
const MAX_STORED = 256
/** Their bytes in all. */
const MAX_STORED_BYTES = 67_108_864
/** Tokens of one page. */
const PAGE_TOKENS = 8000
/** Tokens of a large text that stay in the result. */
const PREVIEW_TOKENS = 500

const PREFIX = 'a2a://results/'
const TEMPLATE = `${PREFIX}{id}{?page}`

interface StoredResult {
  readonly caller: string
  readonly text: string
  readonly mimeType: string
  readonly bytes: number
}

/** Tokens of text in a result for a client: by the client's name, or for any other (`default`). 0: no limit. */
export type ResultTokens = Readonly<Record<string, number>> & { readonly default: number }

/** A tool result, and its tool and client. */
export interface SizedResult {
  readonly result: CallToolResult
  /** The name that the client gave itself. */
  readonly client: string | undefined
  /** The tool promises structured content, so it stays. */
  readonly hasSchema: boolean
}

/** Stores texts of results that are too large for their client: it reads pages of `a2a://results/<id>`. */
export class LargeResults {
  readonly #stored = new Map<string, StoredResult>()
  readonly #newId: () => string

  constructor(newId: () => string) {
    this.#newId = newId
  }

  /** The results of one caller; no other reads them. */
  of(caller: string): CallerResults {
    return new CallerResults(this, caller)
  }

  /** Stores a text; its URI. */
  store(caller: string, text: string, mimeType: string): string {
    const id = this.#newId()
    this.#stored.set(id, { caller, text, mimeType, bytes: Buffer.byteLength(text) })
    while (this.#stored.size > MAX_STORED) this.#dropOldest(() => 1)
    while (this.#stored.size > 1 && this.#sum(({ bytes }) => bytes) > MAX_STORED_BYTES)
      this.#dropOldest(({ bytes }) => bytes)
    return `${PREFIX}${id}`
  }

  /** Drops the oldest result of the caller with the most, so that no caller drops the results of others. */
  #dropOldest(sizeOf: (one: StoredResult) => number): void {
    const sizes = new Map<string, number>()
    for (const one of this.#stored.values()) sizes.set(one.caller, (sizes.get(one.caller) ?? 0) + sizeOf(one))
    const most = Math.max(...sizes.values())
    for (const [id, { caller }] of this.#stored) {
      if (sizes.get(caller) !== most) continue
      this.#stored.delete(id)
      return
    }
  }

  #sum(sizeOf: (one: StoredResult) => number): number {
    return [...this.#stored.values()].reduce((sum, one) => sum + sizeOf(one), 0)
  }

  /** The stored text of a caller; undefined: none, or no longer. */
  find(caller: string, id: string): StoredResult | undefined {
    const found = this.#stored.get(id)
    return found?.caller === caller ? found : undefined
  }
}

/** The large results of one caller, as a source of resources. */
export class CallerResults implements ResourceSource {
  readonly #results: LargeResults
  readonly #caller: string

  constructor(results: LargeResults, caller: string) {
    this.#results = results
    this.#caller = caller
  }

  /** {@link fit} by limits of clients. */
  fitter(limits: ResultTokens): (sized: SizedResult) => CallToolResult {
    return (sized) => this.fit(sized, limits)
  }

  /**
   * The result within the limit of its client. Texts that do not fit become one resource link beside their beginning;
   * other blocks stay.
   */
  fit({ result, client, hasSchema }: SizedResult, limits: ResultTokens): CallToolResult {
    const maxTokens = tokensFor(limits, client)
    const { content, structuredContent, ...rest } = result
    const json = structuredContent === undefined || hasSchema ? null : JSON.stringify(structuredContent)
    if (maxTokens === 0) return result
    let left = maxTokens
    const kept: CallToolResult['content'] = []
    const large: { text: string; mimeType: string }[] = []
    for (const block of content) {
      const text = textIn(block)
      const tokens = text === null ? 0 : tokensOf(text.text)
      if (text === null || (large.length === 0 && tokens <= left)) kept.push(block)
      else large.push(text)
      left -= tokens
    }
    const isLargeJson = json !== null && tokensOf(json) > maxTokens
    if (large.length === 0 && !isLargeJson) return result
    const [only = { text: json ?? '', mimeType: 'application/json' }] = large
    const text = large.length > 1 ? large.map((one) => one.text).join('\n') : only.text
    const structured = structuredContent === undefined || isLargeJson ? {} : { structuredContent }
    const link = this.#linked(text, large.length > 1 ? 'text/plain' : only.mimeType)
    return { ...rest, content: [...kept, ...link], ...structured }
  }

  #linked(text: string, mimeType: string): CallToolResult['content'] {
    const uri = this.#results.store(this.#caller, text, mimeType)
    const pages = pagesOf(text)
    const size = Buffer.byteLength(text)
    const about = `${tokensOf(text)} tokens in ${pages === 1 ? 'one page' : `${pages} pages`}`
    const read = pages === 1 ? `read ${uri}` : `read ${uri}?page=1 to ?page=${pages}`
    return [
      {
        type: 'text',
        text: `${cut(text, 0, PREVIEW_TOKENS * BYTES_PER_TOKEN)}\n[... the whole has ${about}: ${read}]`
      },
      { type: 'resource_link', uri, name: 'whole result', description: about, mimeType, size }
    ]
  }

  list(): readonly [] {
    return []
  }

  templates(): readonly ResourceTemplateType[] {
    return [{ uriTemplate: TEMPLATE, name: 'page of a large tool result' }]
  }

  /** One page, the first without a number; a second part names the next one. */
  read(uri: string): Promise<ReadResourceResult['contents'] | undefined> {
    const [, id = '', number = '1'] = /^a2a:\/\/results\/([\w-]{1,64})(?:\?page=(\d{1,6}))?$/.exec(uri) ?? []
    const stored = this.#results.find(this.#caller, id)
    const page = Number(number)
    if (stored === undefined || page < 1 || page > pagesOf(stored.text)) return Promise.resolve(undefined)
    const { text, mimeType } = stored
    const contents = [{ uri, mimeType: pagesOf(text) === 1 ? mimeType : 'text/plain', text: pageOf(text, page) }]
    if (page < pagesOf(text)) {
      const next = `${PREFIX}${id}?page=${page + 1}`
      contents.push({
        uri: next,
        mimeType: 'text/plain',
        text: `[page ${page} of ${pagesOf(text)}; the next: ${next}]`
      })
    }
    return Promise.resolve(contents)
  }
}

function tokensFor(limits: ResultTokens, client: string | undefined): number {
  return client !== undefined && Object.hasOwn(limits, client) ? (limits[client] ?? limits.default) : limits.default
}

const PAGE_CHARS = PAGE_TOKENS * BYTES_PER_TOKEN

function pagesOf(text: string): number {
  return Math.max(1, Math.ceil(text.length / PAGE_CHARS))
}

function pageOf(text: string, page: number): string {
  return cut(text, (page - 1) * PAGE_CHARS, page * PAGE_CHARS)
}

/** A part of a text. A pair of surrogates at an edge belongs to the part of its first half. */
function cut(text: string, from: number, to: number): string {
  const edge = (at: number): number => (/[\uDC00-\uDFFF]/.test(text.charAt(at)) ? at + 1 : at)
  return text.slice(edge(from), edge(to))
}

function tokensOf(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN)
}

/** The text of a block, and its type; null for a block without text. */
function textIn(block: CallToolResult['content'][number]): { readonly text: string; readonly mimeType: string } | null {
  if (block.type === 'text')
    return { text: block.text, mimeType: isJson(block.text) ? 'application/json' : 'text/plain' }
  if (block.type !== 'resource' || !('text' in block.resource)) return null
  return { text: block.resource.text, mimeType: block.resource.mimeType ?? 'text/plain' }
}

function isJson(text: string): boolean {
  return /^\s*[[{]/.test(text)
}
