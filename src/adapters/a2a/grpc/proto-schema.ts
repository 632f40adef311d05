import { fieldName } from '../server/proto-names.js'
import { A2A_PROTO, RPC_PROTO } from './a2a-proto.js'

/** A field of a message. */
export interface ProtoField {
  readonly number: number
  /** Its name in JSON. */
  readonly name: string
  /** A scalar type, an enum, a message of the schema, or a well-known type (`google.protobuf.Struct`). */
  readonly type: string
  readonly form: 'one' | 'list' | 'map'
  /** Is a default value on the wire different from none? */
  readonly hasPresence: boolean
  /** The names of all fields of its oneof; empty outside of one. */
  readonly rivals: readonly string[]
}

/** A message: its fields in the order of the text, and by number. */
export interface ProtoMessage {
  readonly fields: readonly ProtoField[]
  readonly byNumber: ReadonlyMap<number, ProtoField>
}

/** An enum: its names by number. */
export type ProtoEnum = ReadonlyMap<number, string>

/** A method of the service. */
export interface ProtoMethod {
  readonly name: string
  readonly request: string
  readonly response: string
  /** Is the response a stream? */
  readonly isStream: boolean
}

/** Messages, enums and methods of texts in proto3. */
export interface ProtoSchema {
  readonly messages: ReadonlyMap<string, ProtoMessage>
  readonly enums: ReadonlyMap<string, ProtoEnum>
  readonly methods: readonly ProtoMethod[]
}

const BLOCK = /^(message|enum) (\w+) \{\n([\s\S]*?)^\}/gm
const ONEOF = /^ {2}oneof \w+ \{\n([\s\S]*?)^ {2}\}/gm
const FIELD = /^ +(?:(repeated|optional) )?(?:map<string, ([\w.]+)>|([\w.]+)) (\w+) = (\d+);$/gm
const CONSTANT = /^ {2}(\w+) = (\d+);$/gm
const METHOD = /^ {2}rpc (\w+)\((\w+)\) returns \((stream )?([\w.]+)\);$/gm

/** Reads texts of this project; none of others. */
export function readSchema(...texts: readonly string[]): ProtoSchema {
  const messages = new Map<string, ProtoMessage>([['google.protobuf.Empty', { fields: [], byNumber: new Map() }]])
  const enums = new Map<string, ProtoEnum>()
  const methods: ProtoMethod[] = []
  for (const text of texts) {
    for (const [, kind, name = '', body = ''] of text.matchAll(BLOCK))
      if (kind === 'enum') enums.set(name, new Map([...body.matchAll(CONSTANT)].map(constant)))
      else messages.set(name, messageOf(body))
    for (const [, name = '', request = '', stream, response = ''] of text.matchAll(METHOD))
      methods.push({ name, request, response, isStream: stream !== undefined })
  }
  return { messages, enums, methods }
}

function constant([, name = '', number]: RegExpMatchArray): [number, string] {
  return [Number(number), name]
}

function messageOf(body: string): ProtoMessage {
  const groups = [...body.matchAll(ONEOF)].map(([, fields = '']) =>
    [...fields.matchAll(FIELD)].map(([, , , , name = '']) => fieldName(name))
  )
  const fields = [...body.matchAll(FIELD)].map(([, label, mapped, type, written = '', number]): ProtoField => {
    const name = fieldName(written)
    const rivals = groups.find((names) => names.includes(name)) ?? []
    return {
      number: Number(number),
      name,
      type: mapped ?? type ?? '',
      form: mapped !== undefined ? 'map' : label === 'repeated' ? 'list' : 'one',
      hasPresence: label === 'optional' || rivals.length > 0,
      rivals
    }
  })
  return { fields, byNumber: new Map(fields.map((field) => [field.number, field])) }
}

/** The messages, enums and methods of A2A 1.0, and those of error details. */
export const SCHEMA: ProtoSchema = readSchema(A2A_PROTO, RPC_PROTO)
