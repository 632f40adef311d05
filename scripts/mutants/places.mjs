// Faults in who keeps a place, who is dialled and who counts as online without a link; see list.mjs.

const SPARE =
  'of the unused links the one used longest ago is closed; one in use or fresh never, and never the only one'
const DIALLED =
  'dialled peers: all where there is a slot for each, else only while there are links to less than half of the slots'

/** @type {readonly import('./list.mjs').Mutant[]} */
export const PLACES_MUTANTS = [
  {
    name: 'who cannot be pinged is said to be reached by a way of long ago',
    file: 'src/node/api/peers.ts',
    find: '(await routes.confirm(nodeId))',
    put: '(await routes.find(nodeId))',
    test: 'node/api/peers',
    title: 'a remembered route that leads nowhere by now is not reported as one'
  },
  {
    name: 'a link in use makes room',
    file: 'src/domain/membership/neighbours.ts',
    find: 'unused.find((one) => !one.isBusy())',
    put: 'unused.find((one) => one.peer.length > 0)',
    test: 'domain/membership/neighbours',
    title: SPARE
  },
  {
    name: 'a link that just opened makes room',
    file: 'src/domain/membership/neighbours.ts',
    find: 'now - one.usedAt >= IDLE_MS',
    put: 'now - one.usedAt >= 0',
    test: 'domain/membership/neighbours',
    title: 'two needs do not throw each other out again and again'
  },
  {
    name: 'the link used last makes room',
    file: 'src/domain/membership/neighbours.ts',
    find: 'a.usedAt - b.usedAt',
    put: 'b.usedAt - a.usedAt',
    test: 'domain/membership/neighbours',
    title: SPARE
  },
  {
    name: 'the only link makes room',
    file: 'src/domain/membership/neighbours.ts',
    find: 'if (links.length < 2) return null',
    put: 'if (links.length < 1) return null',
    test: 'domain/membership/neighbours',
    title: SPARE
  },
  {
    name: 'with more members than places all are dialled',
    file: 'src/domain/membership/neighbours.ts',
    find: 'return isFitting || isShort ||',
    put: 'return isFitting || !isFitting ||',
    test: 'domain/membership/neighbours',
    title: DIALLED
  },
  {
    name: 'who had no place is asked again at once',
    file: 'src/domain/membership/neighbours.ts',
    find: 'return isShort && restsUntil <= now',
    put: 'return isShort || restsUntil <= now',
    test: 'domain/membership/neighbours',
    title: DIALLED
  },
  {
    name: 'cards and searches keep a link',
    file: 'src/node/peers/peer-table.ts',
    find: "return kind === 'envelope' || kind === 'reliable'",
    put: "return kind === 'envelope' || kind !== 'ping'",
    test: 'node/peers/spare-link',
    title: 'keep-alives, pings, cards and searches are no use of a link'
  },
  {
    name: 'a link over which an exchange is open makes room',
    file: 'src/node/peer-listeners.ts',
    find: '|| exchanges.isOpenWith(peer) || requests.has(peer)',
    put: '|| (exchanges.isOpenWith(peer) && requests.has(peer))',
    test: 'node/peers/spare-link',
    title: 'a link over which a request is under way is never given away'
  },
  {
    name: 'a proof of presence lasts for ever',
    file: 'src/node/peers/presence.ts',
    find: 'clock.monotonic() - proof.at <= PROOF_MS',
    put: 'clock.monotonic() - proof.at >= 0',
    test: 'node/peers/presence',
    title: 'a member beyond the places is online while a neighbour has a link to it, and offline a minute after'
  },
  {
    name: 'a lost link counts as a proof of presence',
    file: 'src/node/peers/presence.ts',
    find: 'if (isRest) this.#prove(peer)',
    put: 'if (isRest || peer.length > 0) this.#prove(peer)',
    test: 'node/peers/presence',
    title: 'a link closed for another leaves its peer online, a lost one does not'
  },
  {
    name: 'who was put out is online without a link',
    file: 'src/node/peers/presence.ts',
    find: ' && isActive(log.view(), node)',
    put: ' && log.view().members.has(node)',
    test: 'node/peers/presence',
    title: 'a removed member is out at once, also without a link'
  },
  {
    name: 'every member beyond the places is dialled with each probe',
    file: 'src/node/peers/presence.ts',
    find: '.slice(0, DIALS)',
    put: '.slice(0, DIALS * 100)',
    test: 'node/peers/presence',
    title: 'whom no neighbour knows is dialled, two with each probe and not the same ones first again'
  }
]
