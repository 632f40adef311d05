import test from 'brittle'
import { reachableCard, readRemoteCard, type RemoteCard } from '../../../../src/adapters/a2a/remote/remote-card.js'

/** A card as serializers of Java and .NET write it. */
const PADDED = {
  name: 'Padded',
  description: null,
  version: null,
  provider: null,
  iconUrl: null,
  documentationUrl: null,
  capabilities: { streaming: null, pushNotifications: null, extensions: null },
  securitySchemes: null,
  security: null,
  defaultInputModes: null,
  signatures: null,
  skills: [
    {
      id: 'say',
      name: null,
      description: null,
      tags: null,
      examples: null,
      inputModes: null,
      outputModes: null,
      security: null
    }
  ]
}
const MODERN = {
  ...PADDED,
  url: null,
  supportedInterfaces: [{ url: 'https://a.example/', protocolBinding: 'JSONRPC', protocolVersion: null, tenant: null }]
}
const LEGACY = {
  ...PADDED,
  url: 'https://a.example/',
  supportedInterfaces: null,
  preferredTransport: null,
  protocolVersion: null,
  additionalInterfaces: null
}

test('null is absent on a card of either version, wherever a member may be absent', (t) => {
  for (const [card, version] of [
    [MODERN, '1.0'],
    [LEGACY, '0.3']
  ] as const) {
    const read = readRemoteCard(card)
    if (!read.ok) return t.fail(read.reason)
    t.alike(read.card.interfaces, [{ url: 'https://a.example/', binding: 'JSONRPC', version, tenant: '' }])
    t.alike(
      read.card.skills.map(({ id, description, tags }) => [id, description, tags]),
      [['say', '', []]]
    )
  }
  t.absent(readRemoteCard({ ...LEGACY, name: null }).ok, 'a member that must be there is missing')
})

test('an address that reaches nobody is replaced by the address of the card', (t) => {
  const at = (url: string, from: string): string | undefined => {
    const [{ url: reached } = { url: undefined }] = reachableCard(
      { interfaces: [{ url }] } as unknown as RemoteCard,
      from
    ).interfaces
    return reached
  }
  const card = 'http://10.0.0.5:9000/agents/x/.well-known/agent-card.json?v=1'
  for (const [url, reached] of [
    ['http://0.0.0.0:9999/', 'http://10.0.0.5:9000/'],
    ['http://0.0.0.0:9999/a2a?x=1', 'http://10.0.0.5:9000/a2a?x=1'],
    ['https://[::]:9999/rpc', 'http://10.0.0.5:9000/rpc'],
    ['http://[0:0:0:0:0:0:0:0]/', 'http://10.0.0.5:9000/'],
    ['/a2a', 'http://10.0.0.5:9000/a2a'],
    ['', 'http://10.0.0.5:9000/agents/x/'],
    ['rpc', 'http://10.0.0.5:9000/agents/x/rpc'],
    ['http://10.0.0.6/a2a', 'http://10.0.0.6/a2a'],
    ['http://127.0.0.1:1/', 'http://127.0.0.1:1/']
  ] as const)
    t.is(at(url, card), reached, url)
})
