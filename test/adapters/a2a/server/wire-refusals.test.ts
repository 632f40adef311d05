import test, { type Assert } from 'brittle'
import { A2AFault } from '../../../../src/adapters/a2a/server/fault.js'
import { readList } from '../../../../src/adapters/a2a/server/read-params.js'
import { restCall } from '../../../../src/adapters/a2a/server/rest.js'
import type { Wire } from '../../../../src/adapters/a2a/server/wire.js'
import { WIRE_V03 } from '../../../../src/adapters/a2a/server/wire-v03.js'
import { WIRE_V03_REST } from '../../../../src/adapters/a2a/server/wire-v03-rest.js'
import { WIRE_V1 } from '../../../../src/adapters/a2a/server/wire-v1.js'

/** What is told of something that is refused. */
function refusalOf(run: () => unknown): string {
  try {
    run()
    return 'taken'
  } catch (error) {
    return error instanceof A2AFault ? `${error.kind} ${error.message}` : String(error)
  }
}

test('a part that is none is refused in the words of the version', (t: Assert) => {
  const one = 'must be of kind text, file or data and have the text, one of bytes and uri of the file, or the data'
  const cases: readonly (readonly [Wire, unknown, string])[] = [
    [WIRE_V1, {}, 'message.parts[0]: must have exactly one of text, raw, url and data'],
    [WIRE_V1, { raw: '?' }, 'message.parts[0].raw: must be base64'],
    [WIRE_V03, { kind: 'other' }, `message.parts[0]: ${one}`],
    [WIRE_V03, { kind: 'file', file: { bytes: 'aGk=', uri: 'https://x' } }, `message.parts[0]: ${one}`],
    [WIRE_V03, { kind: 'file', file: { bytes: '?' } }, 'message.parts[0].file.bytes: must be base64'],
    [
      WIRE_V03,
      { kind: 'file', file: { uri: 'https://x', mimeType: 5 } },
      'message.parts[0].file.mimeType: must be a text of 0 to 256 characters'
    ],
    [WIRE_V03, { kind: 'text', text: 5 }, 'message.parts[0].text: must be a text']
  ]
  for (const [wire, part, expected] of cases) {
    const role = wire === WIRE_V1 ? 'ROLE_USER' : 'user'
    t.is(
      refusalOf(() => wire.readSend({ message: { messageId: 'z', role, parts: [part] } })),
      `INVALID_PARAMS ${expected}`
    )
  }
})

test('a member of the wrong type is refused by its name, and not left out in silence', (t: Assert) => {
  const message = { messageId: 'z', role: 'ROLE_USER', parts: [{ text: 'x' }] }
  const message03 = { messageId: 'z', role: 'user', parts: [{ kind: 'text', text: 'x' }] }
  for (const [wire, said, flag] of [
    [WIRE_V1, message, 'returnImmediately'],
    [WIRE_V03, message03, 'blocking'],
    [WIRE_V03_REST, message03, 'blocking']
  ] as const) {
    const send = (more: object, ofMessage: object = {}): string =>
      refusalOf(() => wire.readSend({ message: { ...said, ...ofMessage }, ...more }))
    const text = 'must be a text of 1 to 256 characters'
    for (const skillId of [5, true, {}, ['a'], 'x'.repeat(257)]) {
      t.is(send({ metadata: { skillId } }), `INVALID_PARAMS metadata.skillId: ${text}`)
      t.is(send({}, { metadata: { skillId } }), `INVALID_PARAMS message.metadata.skillId: ${text}`)
    }
    t.is(send({ metadata: 5 }), 'INVALID_PARAMS metadata: must be an object')
    for (const value of ['yes', 'true', 1, {}])
      t.is(send({ configuration: { [flag]: value } }), `INVALID_PARAMS configuration.${flag}: must be true or false`)
    t.is(send({ metadata: { skillId: null }, configuration: { [flag]: null } }), 'taken')
    t.is(send({ metadata: { skillId: '' }, configuration: { [flag]: true } }), 'taken')
  }
  for (const includeArtifacts of ['x', 'true', 1])
    t.is(
      refusalOf(() => readList({ includeArtifacts })),
      'INVALID_PARAMS includeArtifacts: must be true or false'
    )
  const listed = (text: string) =>
    readList(restCall({ method: 'GET', path: '/tasks', query: `includeArtifacts=${text}`, asked: null }).params)
  t.alike([listed('true').includeArtifacts, listed('false').includeArtifacts], [true, false])
  for (const text of ['yes', '', '1', 'TRUE'])
    t.is(
      refusalOf(() => listed(text)),
      'INVALID_PARAMS includeArtifacts: must be true or false'
    )
})
