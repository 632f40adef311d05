import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { A2AFault, type FieldViolation } from '../../../../src/adapters/a2a/server/fault.js'
import { PUSH_V03, PUSH_V03_REST, PUSH_V1 } from '../../../../src/adapters/a2a/push/push-wire.js'
import { WIRE_V03 } from '../../../../src/adapters/a2a/server/wire-v03.js'
import { WIRE_V1 } from '../../../../src/adapters/a2a/server/wire-v1.js'
import { holds } from '../../../support/holds.js'

/** What a request is told of its members. */
function violationsOf(read: () => unknown): readonly FieldViolation[] {
  try {
    read()
    return []
  } catch (error) {
    if (!(error instanceof A2AFault) || error.kind !== 'INVALID_PARAMS') throw error
    const [, bad] = error.toRpc().data as readonly { readonly fieldViolations?: readonly FieldViolation[] }[]
    return bad?.fieldViolations ?? [{ field: error.message, description: 'it has no violations' }]
  }
}

const MESSAGE = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] }
const OLD = { messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'x' }] }

test('an invalid push config is reported member by member, in plain words, at its path in each version', (t: Assert) => {
  const url = (field: string): FieldViolation[] => [{ field, description: 'must be a text' }]
  const v1 = 'configuration.taskPushNotificationConfig'
  const v03 = 'configuration.pushNotificationConfig'
  const cases: readonly (readonly [string, () => unknown, readonly FieldViolation[]])[] = [
    ['1.0', () => PUSH_V1.readSet({ taskId: 't' }), url('url')],
    ['0.3', () => PUSH_V03.readSet({ taskId: 't', pushNotificationConfig: {} }), url('pushNotificationConfig.url')],
    [
      'none in 0.3',
      () => PUSH_V03.readSet({ taskId: 't' }),
      [{ field: 'pushNotificationConfig', description: 'must be an object' }]
    ],
    [
      'REST of 0.3',
      () => PUSH_V03_REST.readSet({ taskId: 't', pushNotificationConfig: {} }),
      url('pushNotificationConfig.url')
    ],
    [
      'with a message',
      () => WIRE_V1.readSend({ message: MESSAGE, configuration: { taskPushNotificationConfig: { token: 1 } } }),
      [...url(`${v1}.url`), ...url(`${v1}.token`)]
    ],
    [
      'with one of 0.3',
      () => WIRE_V03.readSend({ message: OLD, configuration: { pushNotificationConfig: { url: '' } } }),
      [{ field: `${v03}.url`, description: 'must not be empty' }]
    ],
    [
      'no configuration',
      () => WIRE_V1.readSend({ message: MESSAGE, configuration: 1 }),
      [{ field: 'configuration', description: 'must be an object' }]
    ],
    [
      'a scheme of 1.0',
      () => PUSH_V1.readSet({ taskId: 't', url: 'https://example.com', authentication: { scheme: 'a b' } }),
      [{ field: 'authentication.scheme', description: 'must be the name of a scheme' }]
    ],
    [
      'no secret',
      () =>
        PUSH_V1.readSet({
          taskId: 't',
          url: 'https://example.com',
          authentication: { scheme: 'HMAC-SHA256', credentials: 'x' }
        }),
      [
        {
          field: 'authentication.credentials',
          description: 'must be a secret of at least 16 characters, or whsec_ and base64'
        }
      ]
    ],
    [
      'credentials of no scheme',
      () => PUSH_V1.readSet({ taskId: 't', url: 'https://example.com', authentication: { credentials: 'x' } }),
      [{ field: 'authentication', description: 'must say of which scheme its credentials are' }]
    ]
  ]
  for (const [what, read, expected] of cases) t.alike(violationsOf(read), expected, what)
})

test('every fault of any push config is reported as the expected value', async (t: Assert) => {
  const config = fc.record(
    {
      id: fc.jsonValue(),
      url: fc.jsonValue(),
      token: fc.jsonValue(),
      authentication: fc.oneof(fc.jsonValue(), fc.record({ schemes: fc.jsonValue(), scheme: fc.jsonValue() })),
      events: fc.jsonValue()
    },
    { requiredKeys: [] }
  )
  const isPlain = (read: () => unknown): boolean =>
    violationsOf(read).every(({ description }) => /^must (?:be|not|say|have) /.test(description))
  await holds(
    t,
    fc.property(
      config,
      (given) =>
        isPlain(() => PUSH_V1.readSet({ taskId: 't', ...given })) &&
        isPlain(() => PUSH_V03.readSet({ taskId: 't', pushNotificationConfig: given }))
    )
  )
})
