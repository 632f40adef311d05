import { NodeError } from '../../kit/errors.js'
import { isRecord } from '../../kit/json.js'
import type { RawItem } from './source.js'

const PLACEHOLDER = /\{(item|file|text)\}/g
const WHOLE = /^\{(item|file|text)\}$/

/** Makes the input of an item when there is no template: a JSON object is the input itself. */
export function plainInput(item: RawItem): unknown {
  if (item.file !== null) return { file: item.file, ...contentsOf(item) }
  return isRecord(item.value) ? item.value : { item: item.value }
}

function contentsOf({ contents }: RawItem): { text?: string; bytes?: Uint8Array } {
  if (contents === null) return {}
  return typeof contents === 'string' ? { text: contents } : { bytes: contents }
}

/** A template of `--input`, parsed once. */
export interface InputTemplate {
  /** Has it any placeholder? */
  readonly hasPlaceholders: boolean
  /** The input of one item; without one the template as it stands. @throws NodeError USAGE for a placeholder without a value */
  inputOf(item: RawItem | null): unknown
}

/**
 * Parses a JSON template over `{item}`, `{file}` and `{text}`. A string that is nothing but a placeholder becomes the value
 * itself; inside a longer string it becomes text. Other braces are literal. @throws NodeError USAGE when it is no JSON
 */
export function parseTemplate(text: string): InputTemplate {
  let template: unknown
  try {
    template = JSON.parse(text)
  } catch (error) {
    throw new NodeError('USAGE', `--input is not JSON: ${error instanceof Error ? error.message : ''}`, {
      next: ['--input \'{"text":"{item}"}\''],
      cause: error
    })
  }
  return {
    hasPlaceholders: text.search(PLACEHOLDER) !== -1,
    inputOf: (item) => (item === null ? template : fillValue(template, item))
  }
}

function fillValue(value: unknown, item: RawItem): unknown {
  if (typeof value === 'string') return fillString(value, item)
  if (Array.isArray(value)) return value.map((one) => fillValue(one, item))
  if (isRecord(value)) return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, fillValue(one, item)]))
  return value
}

function fillString(text: string, item: RawItem): unknown {
  const whole = WHOLE.exec(text)?.[1]
  if (whole !== undefined) return valueOf(whole, item)
  return text.replace(PLACEHOLDER, (_, name: string) => {
    const value = valueOf(name, item)
    return typeof value === 'string' ? value : JSON.stringify(value)
  })
}

function valueOf(name: string, item: RawItem): unknown {
  if (name === 'item') return item.value
  if (name === 'file') {
    if (item.file !== null) return item.file
    throw new NodeError('USAGE', '{file} stands for the files of a glob; for lines use {item}')
  }
  if (typeof item.contents === 'string') return item.contents
  const reason = item.contents === null ? '{text} needs --attach and a glob' : `{text}: ${item.name} is not UTF-8 text`
  throw new NodeError('USAGE', reason)
}
