/** A right card of 1.0, with changes; `undefined` removes a member. */
export function cardWith(changes: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const card: Record<string, unknown> = {
    name: 'x',
    description: '',
    version: '1',
    supportedInterfaces: [{ url: 'https://a.example/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: {},
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 's', name: 'S', description: 'd', tags: [] }],
    ...changes
  }
  return Object.fromEntries(Object.entries(card).filter(([, value]) => value !== undefined))
}

/** The same for a card of 0.3. */
export function oldCardWith(changes: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return cardWith({
    supportedInterfaces: undefined,
    protocolVersion: '0.3.0',
    url: 'https://a.example/rpc',
    ...changes
  })
}
