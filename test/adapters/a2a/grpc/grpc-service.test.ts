import { once } from 'node:events'
import test from 'brittle'
import { GrpcService, type GrpcServiceDeps } from '../../../../src/adapters/a2a/grpc/grpc-service.js'
import { GRPC_CODES, grpcStatus } from '../../../../src/adapters/a2a/grpc/grpc-status.js'
import { encodeProto } from '../../../../src/adapters/a2a/grpc/proto-writer.js'
import { A2AFault } from '../../../../src/adapters/a2a/server/fault.js'
import { restError } from '../../../../src/adapters/a2a/server/listener-fault.js'
import { NodeError } from '../../../../src/kit/errors.js'
import { answerOf, begin, framed, type RawAnswer, rawScene } from '../../../support/grpc-raw.js'
import { ALICE } from '../../../support/gateway.js'

const PATH = '/lf.a2a.v1.A2AService/GetTask'
const GET = framed(encodeProto('GetTaskRequest', { id: 'task_1' }))

/** A service whose tasks all fail with an error. */
function service(error: unknown, more: Partial<GrpcServiceDeps> = {}): GrpcService {
  const gateway = { get: () => Promise.reject(error) } as unknown as GrpcServiceDeps['gateway']
  return new GrpcService({
    gateway,
    extendedCard: () => Promise.resolve({}),
    extensions: () => [],
    admit: () => ({ principal: ALICE, onEnd: () => () => {} }),
    refusal: () => null,
    take: () => 0,
    ...more
  })
}

function codeOf({ code }: RawAnswer): string | undefined {
  return Object.entries(GRPC_CODES).find(([, number]) => number === code)?.[0]
}

test('errors of the protocol have the codes of its table, and unexpected ones show nothing of the node', async (t) => {
  for (const [error, code, text] of [
    [new NodeError('TASK_NOT_FOUND', 'no such task'), 'NOT_FOUND', 'no such task'],
    [new A2AFault('TASK_NOT_CANCELABLE', 'it has ended'), 'FAILED_PRECONDITION', 'it has ended'],
    [new A2AFault('PUSH_NOTIFICATION_NOT_SUPPORTED', 'none'), 'FAILED_PRECONDITION', 'none'],
    [new A2AFault('UNSUPPORTED_OPERATION', 'no'), 'FAILED_PRECONDITION', 'no'],
    [new A2AFault('CONTENT_TYPE_NOT_SUPPORTED', 'no'), 'INVALID_ARGUMENT', 'no'],
    [new A2AFault('INVALID_AGENT_RESPONSE', 'bad'), 'INTERNAL', 'bad'],
    [new A2AFault('EXTENSION_SUPPORT_REQUIRED', 'x'), 'FAILED_PRECONDITION', 'x'],
    [new NodeError('FORBIDDEN', 'no right'), 'PERMISSION_DENIED', 'no right'],
    [new NodeError('OVERLOADED', 'busy'), 'RESOURCE_EXHAUSTED', 'busy'],
    [new NodeError('PEER_OFFLINE', 'away'), 'UNAVAILABLE', 'away'],
    [new TypeError('secret of the node'), 'INTERNAL', 'the node failed at this request']
  ] as const) {
    const { connect } = await rawScene(t, service(error))
    const answer = await answerOf(begin(connect(), { headers: { ':path': PATH }, body: GET }))
    t.alike([codeOf(answer), answer.message], [code, text])
  }
})

test('service parameters are metadata: a version, and extensions that an agent requires or offers', async (t) => {
  const extensions = (): { uri: string; required: boolean }[] => [{ uri: 'urn:x', required: true }]
  const { connect } = await rawScene(t, service(new NodeError('TASK_NOT_FOUND', 'none'), { extensions }))
  const session = connect()
  const asked = async (headers: Record<string, string>): Promise<string | undefined> =>
    codeOf(await answerOf(begin(session, { headers: { ':path': PATH, ...headers }, body: GET })))
  t.is(await asked({}), 'FAILED_PRECONDITION', 'the required extension is missing')
  t.is(await asked({ 'a2a-extensions': 'urn:y, urn:x' }), 'NOT_FOUND')
  t.is(await asked({ 'a2a-extensions': 'urn:x', 'a2a-version': '1.0' }), 'NOT_FOUND')
  t.is(await asked({ 'a2a-extensions': 'urn:x', 'a2a-version': '0.3' }), 'FAILED_PRECONDITION')
  t.is(await asked({ 'a2a-extensions': 'urn:x', 'a2a-version': '7.0' }), 'FAILED_PRECONDITION')
  const stream = begin(session, { headers: { ':path': PATH, 'a2a-extensions': 'urn:x' }, body: GET })
  const [head] = (await once(stream, 'response')) as [Record<string, string>]
  t.is(head['a2a-extensions'], 'urn:x', 'the answer names what was activated')
})

test('calls beyond the limit of a token, refused callers, unknown methods and bad bytes each have their status', async (t) => {
  const busy = await rawScene(t, service(null, { take: () => 3 }))
  const limited = await answerOf(begin(busy.connect(), { headers: { ':path': PATH }, body: GET }))
  t.alike([codeOf(limited), limited.message], ['RESOURCE_EXHAUSTED', 'too many requests: try again in 3 s'])
  const refusal = (): ReturnType<typeof grpcStatus> =>
    grpcStatus(restError({ status: 401, code: 'UNAUTHORIZED', message: 'refused: a token is needed' }))
  const admit = (): Promise<never> => Promise.reject(new Error('no token'))
  const closed = await rawScene(t, service(null, { admit, refusal }))
  const session = closed.connect()
  // Its body does not end: it is not read without a token.
  const refused = await answerOf(begin(session, { headers: { ':path': PATH }, body: GET, open: true }))
  t.alike([codeOf(refused), refused.message], ['UNAUTHENTICATED', 'refused: a token is needed'])
  await once(session, 'close')
  const { connect } = await rawScene(t, service(null))
  const open = connect()
  t.is(codeOf(await answerOf(begin(open, { headers: { ':path': '/lf.a2a.v1.A2AService/Nothing' } }))), 'UNIMPLEMENTED')
  const bad = await answerOf(begin(open, { headers: { ':path': PATH }, body: framed(Buffer.from([0x0b])) }))
  t.alike([codeOf(bad), /is not taken: the bytes are no protocol/.test(bad.message)], ['INVALID_ARGUMENT', true])
  const nothing = await answerOf(begin(open, { headers: { ':path': PATH }, body: framed(Buffer.alloc(0)) }))
  t.alike([codeOf(nothing), nothing.message], ['INVALID_ARGUMENT', 'id: must be a text of 1 to 256 characters'])
})

test('details of a status fit the trailers of clients', (t) => {
  const violations = Array.from({ length: 500 }, (_, i) => ({ field: `field${i}`, description: 'must be a text' }))
  const small = grpcStatus(new A2AFault('INVALID_PARAMS', 'x', { violations: violations.slice(0, 2) }).toRest())
  const large = grpcStatus(new A2AFault('INVALID_PARAMS', 'x'.repeat(9000), { violations }).toRest())
  t.ok(Buffer.from(small.details, 'base64').includes('field1'))
  t.ok(large.details.length < 6000 && large.message.length <= 1024)
  t.ok(Buffer.from(large.details, 'base64').includes('INVALID_PARAMS'), 'the reason stays')
})
