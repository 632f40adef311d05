import test from 'brittle'
import { checkCard } from '../../../../src/adapters/a2a/remote/card-check.js'
import { hybridSecurity, securityV03, securityV1 } from '../../../../src/adapters/a2a/cards/card-security.js'
import { interfacesOf } from '../../../../src/adapters/a2a/cards/card-interfaces.js'
import { toCardV03, toHybridCard } from '../../../../src/adapters/a2a/cards/card-v03.js'
import { toCardV1 } from '../../../../src/adapters/a2a/cards/card-v1.js'

const oauth = { issuer: 'https://node.example', scopes: { 'a2a:read': 'read' } }

test('cards name the flows of OAuth with their URLs and scopes beside the token of the node, in the words of each version', (t) => {
  const one = securityV1({ oauth })
  t.alike(Object.keys(one.securitySchemes), [
    'bearer',
    'oauth2-authorizationCode',
    'oauth2-clientCredentials',
    'oauth2-deviceCode'
  ])
  t.alike(one.securitySchemes['oauth2-clientCredentials'], {
    oauth2SecurityScheme: {
      flows: { clientCredentials: { tokenUrl: 'https://node.example/oauth/token', scopes: oauth.scopes } },
      oauth2MetadataUrl: 'https://node.example/.well-known/oauth-authorization-server'
    }
  })
  const old = securityV03({ oauth })
  t.alike(
    old.security,
    [{ bearer: [] }, { 'oauth2-authorizationCode': [] }, { 'oauth2-clientCredentials': [] }],
    'any of them is enough'
  )
  t.alike(Object.keys(hybridSecurity({ oauth }).securitySchemes), Object.keys(old.securitySchemes))
  t.alike(securityV03({}), {
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
    security: [{ bearer: [] }]
  })
})

test('a card with OAuth is valid in 1.0, in 0.3 and as both at once', (t) => {
  const interfaces = interfacesOf({ base: 'http://127.0.0.1:1' }, null)
  const skills = [{ id: 'a', name: 'A', description: 'does a', tags: ['a'] }]
  const subject = {
    name: 'n',
    description: 'd',
    version: '1.0.0',
    interfaces,
    skills,
    pushNotifications: true,
    extensions: [],
    oauth
  }
  for (const [card, versions] of [
    [toCardV1(subject), ['1.0']],
    [toCardV03(subject), ['0.3']],
    [toHybridCard(subject), ['1.0', '0.3']]
  ] as const) {
    const checked = checkCard(card)
    t.alike([checked.findings, checked.versions], [[], versions])
  }
})
