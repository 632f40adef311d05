import * as sdk from '@a2a-js/sdk'
import { A2AService } from '@a2a-js/sdk/server/grpc'
import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire'
import test from 'brittle'
import fc from 'fast-check'
import { decodeProto, MAX_PROTO_VALUES, ProtoFault } from '../../../../src/adapters/a2a/grpc/proto-reader.js'
import { SCHEMA } from '../../../../src/adapters/a2a/grpc/proto-schema.js'
import { encodeProto } from '../../../../src/adapters/a2a/grpc/proto-writer.js'
import { holds } from '../../../support/holds.js'

type Data = Record<string, unknown>

/** Texts that have UTF-8. */
const text = (minLength = 0): fc.Arbitrary<string> => fc.string({ unit: 'grapheme', minLength, maxLength: 12 })
const id = text(1)
const key = text().filter((name) => name !== '__proto__')
const json = fc.letrec<{ value: unknown; object: Data }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, true, false, 0, -1, 1.5, 2 ** 60, ''),
    text(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
    fc.array(tie('value'), { maxLength: 4 }),
    tie('object')
  ),
  object: fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true })
}))
const metadata = json.object.filter((data) => Object.keys(data).length > 0)
/** Members that may be absent. */
const some = <T extends object>(members: { [K in keyof T]: fc.Arbitrary<T[K]> }, required: (keyof T)[]) =>
  fc.record(members, { requiredKeys: required }) as unknown as fc.Arbitrary<Data>
const content = fc.oneof(
  fc.record({ text: text() }),
  fc.record({ raw: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('base64')) }),
  fc.record({ url: text() }),
  fc.record({ data: json.value })
)
const about = some({ metadata, filename: id, mediaType: id }, [])
const part = fc.tuple(content, about).map(([one, more]) => ({ ...one, ...more }))
const parts = fc.array(part, { minLength: 1, maxLength: 3 })
const names = fc.array(id, { minLength: 1, maxLength: 3 })
const role = fc.constantFrom('ROLE_USER', 'ROLE_AGENT')
const message = some(
  { messageId: id, role, parts, contextId: id, taskId: id, metadata, extensions: names, referenceTaskIds: names },
  ['messageId', 'role', 'parts']
)
const artifact = some({ artifactId: id, parts, name: id, description: id, metadata, extensions: names }, [
  'artifactId',
  'parts'
])
/** Before 1970 the official codec for JavaScript writes fractions that the format forbids. */
const timestamp = fc
  .date({ min: new Date('1970-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true })
  .map((date) => date.toISOString())
const state = fc.constantFrom(...[...(SCHEMA.enums.get('TaskState')?.values() ?? [])].slice(1))
const status = some({ state, message, timestamp }, ['state', 'timestamp'])
const list = <T>(one: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(one, { minLength: 1, maxLength: 3 })
const task = some({ id, contextId: id, status, artifacts: list(artifact), history: list(message), metadata }, [
  'id',
  'contextId',
  'status'
])
const place = { taskId: id, contextId: id }
const event = fc.oneof(
  fc.record({ task }),
  fc.record({ message }),
  fc.record({ statusUpdate: some({ ...place, status, metadata }, ['taskId', 'contextId', 'status']) }),
  fc.record({
    artifactUpdate: some({ ...place, artifact, append: fc.constant(true), lastChunk: fc.constant(true), metadata }, [
      'taskId',
      'contextId',
      'artifact'
    ])
  })
) as fc.Arbitrary<Data>
const push = some({ id, taskId: id, url: id, token: id, authentication: fc.record({ scheme: id, credentials: id }) }, [
  'url'
])
const configuration = some(
  {
    acceptedOutputModes: names,
    taskPushNotificationConfig: push,
    historyLength: fc.nat(10_000),
    returnImmediately: fc.constant(true)
  },
  []
)

/** The messages of the gateway, and how the official client reads and writes them. */
const CODECS = [
  {
    type: 'StreamResponse',
    values: event,
    of: A2AService.sendStreamingMessage,
    side: 'response',
    form: sdk.StreamResponse
  },
  { type: 'Task', values: task, of: A2AService.getTask, side: 'response', form: sdk.Task },
  {
    type: 'ListTasksResponse',
    values: some({ tasks: list(task), nextPageToken: id, pageSize: fc.integer({ min: 1, max: 100 }) }, ['pageSize']),
    of: A2AService.listTasks,
    side: 'response',
    form: sdk.ListTasksResponse
  },
  {
    type: 'SendMessageRequest',
    values: some({ tenant: id, message, configuration, metadata }, ['message']),
    of: A2AService.sendMessage,
    side: 'request',
    form: sdk.SendMessageRequest
  },
  {
    type: 'ListTasksRequest',
    values: some(
      {
        tenant: id,
        contextId: id,
        status: state,
        pageSize: fc.integer({ min: -5, max: 100 }),
        pageToken: id,
        historyLength: fc.nat(9),
        statusTimestampAfter: timestamp,
        includeArtifacts: fc.boolean()
      },
      []
    ),
    of: A2AService.listTasks,
    side: 'request',
    form: sdk.ListTasksRequest
  },
  {
    type: 'TaskPushNotificationConfig',
    values: push,
    of: A2AService.createTaskPushNotificationConfig,
    side: 'request',
    form: sdk.TaskPushNotificationConfig
  }
] as const

interface Codec {
  readonly requestSerialize: (value: never) => Buffer
  readonly responseSerialize: (value: never) => Buffer
  readonly requestDeserialize: (bytes: Buffer) => unknown
  readonly responseDeserialize: (bytes: Buffer) => unknown
}

/** Does the official codec have another form for it? It drops a part whose data is null. */
function hasNullData(value: unknown): boolean {
  return JSON.stringify(value).includes('"data":null')
}

for (const { type, values, of, side, form } of CODECS) {
  const codec = of as unknown as Codec
  const official = form as unknown as { fromJSON(value: unknown): unknown }
  test(`any ${type} has the same JSON after a round trip through protocol buffers, and is that of the official codec`, async (t) => {
    await holds(
      t,
      fc.property(values, (value) => {
        const bytes = encodeProto(type, value)
        if (JSON.stringify(sorted(decodeProto(type, bytes))) !== JSON.stringify(sorted(value)))
          throw new Error(`became ${JSON.stringify(decodeProto(type, bytes))}`)
        if (hasNullData(value)) return
        const theirs = official.fromJSON(value)
        const read = side === 'request' ? codec.requestDeserialize(bytes) : codec.responseDeserialize(bytes)
        if (JSON.stringify(sorted(read)) !== JSON.stringify(sorted(theirs)))
          throw new Error(`is read as ${JSON.stringify(read)} in the place of ${JSON.stringify(theirs)}`)
        const written =
          side === 'request' ? codec.requestSerialize(theirs as never) : codec.responseSerialize(theirs as never)
        if (JSON.stringify(sorted(decodeProto(type, written))) !== JSON.stringify(sorted(value)))
          throw new Error(`theirs is read as ${JSON.stringify(decodeProto(type, written))}`)
      }),
      100
    )
  })
}

/** A copy with sorted members, as JSON has it. */
function sorted(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_name, one: unknown) =>
      typeof one === 'object' && one !== null && !Array.isArray(one)
        ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))
        : one
    ) ?? 'null'
  ) as unknown
}

/** The reason for which bytes are not taken. */
function refused(type: string, bytes: Uint8Array): string {
  try {
    decodeProto(type, Buffer.from(bytes))
    return 'taken'
  } catch (error) {
    if (!(error instanceof ProtoFault)) throw error
    return error.message
  }
}

/** Data nested in lists, as bytes of a part. */
function nested(levels: number): Uint8Array {
  let value: Uint8Array = new Uint8Array()
  for (let i = 0; i < levels; i++) {
    const item = new BinaryWriter().uint32(10).bytes(value).finish()
    value = new BinaryWriter().uint32(50).bytes(item).finish()
  }
  return new BinaryWriter().uint32(34).bytes(value).finish()
}

test('bytes of a client beyond the bounds are refused before they are whole in memory', (t) => {
  t.is(refused('Part', nested(20)), 'taken')
  t.is(refused('Part', nested(1000)), 'nested deeper than 32')
  t.is(refused('Message', Buffer.alloc(2 * MAX_PROTO_VALUES + 2, Buffer.from([0x2a, 0]))), 'more than 1000000 values')
  const proto = encodeProto('Part', { data: { aaaaaaaaa: 1 } })
  proto.write('__proto__', proto.indexOf('aaaaaaaaa'))
  t.is(refused('Part', proto), 'the key __proto__ is not allowed')
  t.is(refused('Part', Buffer.from([0x0a, 1, 0xff])), 'a text is not UTF-8')
  const infinite = new BinaryWriter().uint32(17).double(Number.POSITIVE_INFINITY).finish()
  t.is(refused('Part', new BinaryWriter().uint32(34).bytes(infinite).finish()), 'a number that is not finite')
  const late = new BinaryWriter().uint32(8).int64('253402300800').finish()
  t.is(
    refused('TaskStatus', new BinaryWriter().uint32(26).bytes(late).finish()),
    'a timestamp is not of the years 1 to 9999'
  )
  const broken = /no protocol buffers/
  for (const [what, bytes] of Object.entries({
    'a length beyond the end': [0x0a, 5, 0x61],
    'a length of 64 bits': [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    'a varint without an end': [0x80, 0x80],
    'a varint of eleven bytes': [...Array.from({ length: 10 }, () => 0xff), 1],
    'a group': [0x0b, 0x0c],
    'the field 0': [0x02, 0]
  }))
    t.ok(broken.test(refused('Message', Uint8Array.from(bytes))), what)
})

test('unknown fields are skipped, pieces of a message are merged, and the last one of a oneof counts', (t) => {
  const unknown = new BinaryWriter()
  unknown.uint32(10).string('m1').uint32(8000).int64(-7).uint32(8001).fixed64(1).uint32(8002).string('x')
  unknown.uint32(8005).fixed32(9).uint32(32).int32(7)
  t.alike(decodeProto('Message', Buffer.from(unknown.finish())), { messageId: 'm1', role: '7' })
  const wrong = new BinaryWriter().uint32(8).int32(5).finish()
  t.alike(decodeProto('Message', Buffer.from(wrong)), {}, 'a known field of another wire type is unknown')
  const [one, two] = [{ status: { state: 'TASK_STATE_WORKING' } }, { status: { message: { messageId: 'm' } } }]
  t.alike(decodeProto('Task', Buffer.concat([encodeProto('Task', one), encodeProto('Task', two)])), {
    status: { state: 'TASK_STATE_WORKING', message: { messageId: 'm' } }
  })
  const both = Buffer.concat([encodeProto('Part', { text: 'a' }), encodeProto('Part', { url: 'b' })])
  t.alike(decodeProto('Part', both), { url: 'b' })
  t.alike(encodeProto('Part', { text: 'a', more: 1 }), encodeProto('Part', { text: 'a' }), 'unknown members')
  for (const time of ['2026-01-01T00:00:00.123456789Z', '1969-12-31T23:59:59.999Z', '0001-01-01T00:00:00.000Z'])
    t.alike(decodeProto('TaskStatus', encodeProto('TaskStatus', { timestamp: time })), { timestamp: time })
})

test('the service has the methods, names and numbers of the official one', (t) => {
  t.alike(
    SCHEMA.methods.map(({ name, isStream }) => [`/lf.a2a.v1.A2AService/${name}`, isStream] as const).sort(byPath),
    Object.values(A2AService)
      .map((one) => [one.path, one.responseStream] as const)
      .sort(byPath)
  )
  const card = {
    name: 'n',
    provider: { url: 'u', organization: 'o' },
    supportedInterfaces: [{ url: 'a', protocolBinding: 'GRPC', tenant: 't', protocolVersion: '1.0' }],
    capabilities: {
      streaming: true,
      pushNotifications: false,
      extensions: [{ uri: 'x', required: true, params: { a: 1 } }]
    },
    securitySchemes: {
      key: { apiKeySecurityScheme: { location: 'header', name: 'k' } },
      http: { httpAuthSecurityScheme: { scheme: 'Bearer', bearerFormat: 'JWT' } },
      oidc: { openIdConnectSecurityScheme: { openIdConnectUrl: 'u' } },
      mtls: { mtlsSecurityScheme: { description: 'd' } },
      code: oauth({
        authorizationCode: { authorizationUrl: 'a', tokenUrl: 't', scopes: { s: 'd' }, pkceRequired: true }
      }),
      client: oauth({ clientCredentials: { tokenUrl: 't', refreshUrl: 'r', scopes: { s: 'd' } } }),
      device: oauth({ deviceCode: { deviceAuthorizationUrl: 'd', tokenUrl: 't', scopes: { s: 'd' } } })
    },
    securityRequirements: [{ schemes: { http: { list: ['a', 'b'] } } }],
    defaultInputModes: ['text/plain'],
    skills: [{ id: 's', name: 'n', tags: ['t'], examples: ['e'], inputModes: ['i'], outputModes: ['o'] }],
    signatures: [{ protected: 'p', signature: 's', header: { kid: 'k' } }],
    iconUrl: ''
  }
  const bytes = encodeProto('AgentCard', card)
  t.alike(sorted(decodeProto('AgentCard', bytes)), sorted({ ...card, capabilities: { ...card.capabilities } }))
  t.alike(sorted(A2AService.getExtendedAgentCard.responseDeserialize(bytes)), sorted(sdk.AgentCard.fromJSON(card)))
  t.is(new BinaryReader(bytes).uint32(), 10, 'the first field is the name')
})

function byPath([one]: readonly [string, boolean], [other]: readonly [string, boolean]): number {
  return one < other ? -1 : 1
}

function oauth(flows: object): object {
  return { oauth2SecurityScheme: { flows, oauth2MetadataUrl: 'm' } }
}
