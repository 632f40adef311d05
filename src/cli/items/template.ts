import { NodeError } from '../../kit/errors.js'
import { isRecord, jsonSyntaxReason } from '../../kit/json.js'
import { boundedJson } from '../options.js'
import type { RawItem } from './source.js'

const OF_ITEMS = /\{(item|file|text)\}/
const PLACEHOLDER = /\{(item|file|text|goal|round|check)\}/g
const WHOLE = /^\{(item|file|text|goal|round|check)\}$/

/** Values of the swarm for templates: its goal, its round (1 without a loop), and the output of the last check. */
export interface TemplateSwarm {
  readonly goal: string
  readonly round: number
  readonly check: string
}

interface TemplateValues {
  readonly item: RawItem | null
  readonly swarm: TemplateSwarm
}

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
  /** Has it any placeholder that stands for something of an item? */
  readonly needsItems: boolean
  /**
   * The input of one item; null: of a swarm without items.
   * @throws NodeError USAGE for a placeholder without a value
   */
  inputOf(item: RawItem | null, swarm: TemplateSwarm): unknown
}

/**
 * Parses a JSON template over `{item}`, `{file}`, `{text}`, `{goal}`, `{round}` and `{check}`. A string that is nothing
 * but a placeholder becomes the value itself; inside a longer string it becomes text. Other braces are literal. @throws
 * NodeError USAGE when it is no JSON, or beyond its limits
 */
export function parseTemplate(text: string): InputTemplate {
  let template: unknown
  try {
    template = JSON.parse(text)
  } catch (error) {
    throw new NodeError('USAGE', `--input is not JSON: ${jsonSyntaxReason(error)}`, {
      next: ['--input \'{"text":"{item}"}\''],
      cause: error
    })
  }
  boundedJson(template, '--input')
  return {
    needsItems: OF_ITEMS.test(text),
    inputOf: (item, swarm) => fillValue(template, { item, swarm })
  }
}

function fillValue(value: unknown, values: TemplateValues): unknown {
  if (typeof value === 'string') return fillString(value, values)
  if (Array.isArray(value)) return value.map((one) => fillValue(one, values))
  if (isRecord(value))
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, fillValue(one, values)]))
  return value
}

function fillString(text: string, values: TemplateValues): unknown {
  const whole = WHOLE.exec(text)?.[1]
  if (whole !== undefined) return valueOf(whole, values)
  return text.replace(PLACEHOLDER, (_, name: string) => {
    const value = valueOf(name, values)
    return typeof value === 'string' ? value : JSON.stringify(value)
  })
}

function valueOf(name: string, { item, swarm }: TemplateValues): unknown {
  if (name === 'goal' || name === 'round' || name === 'check') return swarm[name]
  if (item === null) throw new NodeError('USAGE', `{${name}} needs --items`)
  if (name === 'item') return item.value
  if (name === 'file') {
    if (item.file !== null) return item.file
    throw new NodeError('USAGE', '{file} needs the files of a glob; for lines use {item}')
  }
  if (typeof item.contents === 'string') return item.contents
  const reason = item.contents === null ? '{text} needs --attach and a glob' : `{text}: ${item.name} is not UTF-8 text`
  throw new NodeError('USAGE', reason)
}
