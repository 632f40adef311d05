// Faults in what carries messages of others and in what takes them; see list.mjs.

/** @type {readonly import('./list.mjs').Mutant[]} */
export const HOPS_MUTANTS = [
  {
    name: 'the signature of the origin is not checked',
    file: 'src/domain/channel/relayed.ts',
    find: 'return verify(signedBytes(frame, binding), frame.signature, keyFromText(frame.origin))',
    put: 'return verify !== undefined && signedBytes(frame, binding).byteLength > 0 && keyFromText(frame.origin).byteLength === 32',
    test: 'node/relay/origin-signature',
    title: 'nobody can put words into the mouth of another node: a forged origin, an altered body or header'
  },
  {
    name: 'a signature is good for every way',
    file: 'src/domain/channel/relayed.ts',
    find: 'const keys = [mesh, firstHop, origin, target]',
    put: 'const keys = [mesh, firstHop, origin, target].filter((key) => key !== firstHop)',
    test: 'node/relay/origin-signature',
    title: 'a signature is good for one mesh, one recipient and one way'
  },
  {
    name: 'the content of a relayed frame is not signed',
    file: 'src/domain/channel/relayed.ts',
    find: ', hash(content))',
    put: ', hash(content.subarray(content.byteLength)))',
    test: 'domain/channel/relayed',
    title: 'any changed bit outside of its hops makes it the frame of nobody'
  },
  {
    name: 'hops do not weaken what passes them',
    file: 'src/node/messaging/verify.ts',
    find: 'party: weakened(party, powers), certified: known',
    put: 'party, certified: known',
    test: 'node/relay/forwarder',
    title:
      'a message is as weak as the weaker of its sender and its hop: every tier of both and of the target, at the hop and at the end'
  },
  {
    name: 'who carries a message lends it its own power',
    file: 'src/node/relay/forwarder.ts',
    find: 'own === null ? party : weakened(party, [own])',
    put: 'own === null ? party : weakened(party, [])',
    test: 'node/relay/forwarder',
    title:
      'a message is as weak as the weaker of its sender and its hop: every tier of both and of the target, at the hop and at the end'
  },
  {
    name: 'the last hop is not compared with the stream',
    file: 'src/domain/routing/hops.ts',
    find: 'if ((hops.at(-1) ?? origin) !== peer)',
    put: 'if ((hops.at(-1) ?? origin) === self)',
    test: 'node/relay/origin-signature',
    title: 'the last hop is who brings it, and no node is passed twice, nor sender, recipient or reader at all'
  },
  {
    name: 'a node may be passed twice',
    file: 'src/domain/routing/hops.ts',
    find: 'new Set(hops).size !== hops.length',
    put: 'new Set(hops).size > hops.length',
    test: 'domain/routing/hops',
    title: 'a way is sound if and only if nobody stands on it twice and its last node brought the message'
  },
  {
    name: 'what others carry counts each time it comes',
    file: 'src/node/relay/origin-signature.ts',
    find: 'if (isOnce) this.#replays.add(message)',
    put: 'void message',
    test: 'node/relay/origin-signature',
    title: 'an envelope outside of a lane counts once; one that its node sends again is another frame'
  },
  {
    name: 'an exchange with one agent of a node is one with all of them',
    file: 'src/domain/routing/exchanges.ts',
    find: 'from < to ? `${peer}\\n${from}\\n${to}\\n${correlationId}`',
    put: "from !== '' ? `${peer}\\n${correlationId}`",
    test: 'node/messaging/inbound.agents',
    title: 'a stream to one agent is no way into another one of the node'
  },
  {
    name: 'an operator may write along the exchanges of others',
    file: 'src/domain/routing/exchanges.ts',
    find: 'this.#byOpener.get(openerText({ peer, correlationId, from: to })) ?? []',
    put: '[...this.#byOpener.values()].flat()',
    test: 'node/messaging/exchange-table',
    title:
      'a reply is admitted only between the two agents of one exchange, or from the operator of the asked node, for any open exchanges'
  },
  {
    name: 'words about messages that were never passed on are relayed',
    file: 'src/node/relay/forwarder.ts',
    find: 'if (passed?.next !== peer || passed.to !== body.to) return',
    put: 'if (passed === undefined) return this.#tell(body.origin, body)\n    if (passed.to !== body.to) return',
    test: 'node/relay/forwarder.words',
    title:
      'reports about undelivered messages that a peer has relayed leave capacity for the messages of the node itself'
  },
  {
    name: 'neighbours that were not asked answer too',
    file: 'src/node/peers/query.ts',
    find: 'if (open?.missing.delete(peer) !== true) return',
    put: 'open?.missing.delete(peer)\n    if (open === undefined) return',
    test: 'node/peers/query',
    title: 'each asked peer counts once, on its own question, until all have answered or the time is over'
  },
  {
    name: 'vain searches are forgotten at once',
    file: 'src/node/relay/route-discovery.ts',
    find: 'peer !== to && !isVain(peer)',
    put: 'peer !== to && (!isVain(peer) || peer !== to)',
    test: 'node/relay/route-discovery.searches',
    title: 'a search without a result is not repeated for any asking node, for a while'
  },
  {
    name: 'silence during the search of another counts as having no way',
    file: 'src/node/relay/route-discovery.ts',
    find: 'if (except === self) for (const one of silent)',
    put: 'for (const one of silent)',
    test: 'node/relay/route-discovery.searches',
    title: 'a neighbour that was too slow for one search is asked by the next one of another neighbour'
  },
  {
    name: 'what one neighbour has no way to, none has',
    file: 'src/domain/routing/negative-route-cache.ts',
    find: '    const of = this.#ofNeighbour.get(neighbour)\n',
    put: '    const of = this.#ofNeighbour.get(neighbour) ?? [...this.#ofNeighbour.values()][0]\n',
    test: 'node/relay/route-discovery.searches',
    title: 'a newcomer is asked, and nodes without a route are not asked again'
  },
  {
    name: 'no neighbour is assured of a search',
    file: 'src/node/relay/route-discovery.ts',
    find: '(this.#allSearches.take() || this.#assured.take(peer))',
    put: 'this.#allSearches.take()',
    test: 'node/relay/route-discovery.searches',
    title:
      'many neighbours that ask for all kinds of nodes leave each other one its searches, and this node its answers'
  },
  {
    name: 'what a person of this node denies has passed before',
    file: 'src/node/messaging/outbound.ts',
    find: 'isReported ? null : path',
    put: 'path',
    test: 'node/messaging/inbound.here',
    title: 'a call within the node that a person denies is one decision and one line'
  },
  {
    name: 'what is not even looked at within the node is not on record',
    file: 'src/node/messaging/inbound.ts',
    find: "      this.#deps.accessControl.record('refusal', verified.refusal, { peer: null, header })\n",
    put: '',
    test: 'node/messaging/inbound.here',
    title: 'a message whose sender disappears meanwhile is refused to its sender, on record once'
  },
  {
    name: 'nobody is assured of being carried',
    file: 'src/node/relay/forwarder.ts',
    find: 'return bytes <= ASSURED_BYTES && this.#assured.take(key) && this.#reserve.take()',
    put: 'return false',
    test: 'node/relay/forwarder',
    title: 'nodes that have much carried together do not keep out one that has little carried'
  },
  {
    name: 'who has much carried uses up what is assured',
    file: 'src/node/relay/forwarder.ts',
    find: 'ASSURED_BYTES && this.#assured.take(key) && this',
    put: 'ASSURED_BYTES && this',
    test: 'node/relay/forwarder.limits',
    title:
      'however many nodes have much carried, one that has little is carried too, and no more than a neighbour takes'
  },
  {
    name: 'the bytes that are carried for all are not bounded',
    file: 'src/node/relay/forwarder.ts',
    find: 'this.#inAll.take() && this.#bytesInAll.take(bytes)',
    put: 'this.#inAll.take()',
    test: 'node/relay/forwarder.limits',
    title:
      'however many nodes have much carried, one that has little is carried too, and no more than a neighbour takes'
  },
  {
    name: 'a neighbour that lies about its ways is believed again at once',
    file: 'src/domain/routing/hops.ts',
    find: 'isDoubted ? 1 : 0',
    put: 'isDoubted ? 0 : 0',
    test: 'node/relay/next-hop.attacks',
    title: 'a request takes another neighbour when the one that offered a route relays nothing'
  },
  {
    name: 'a recorded message over a neighbour is sent once',
    file: 'src/node/reliable/lanes.ts',
    find: '    for (const lane of lanes) lane.tick()\n',
    put: '    for (const lane of lanes) if (this.#deps.isOnline(peer)) lane.tick()\n',
    test: 'node/relay/next-hop',
    title:
      'a request over a neighbour is sent until its node has it, for any loss: the message, its acknowledgement, the answer'
  },
  {
    name: 'nothing looks for a way for what waits',
    file: 'src/node/relay/next-hop.ts',
    find: 'if (search.isRunning || clock.monotonic() < search.dueAt) return',
    put: 'if (clock.monotonic() >= 0) return',
    test: 'node/relay/next-hop',
    title: 'a request whose hop dies before it arrives goes by another one'
  },
  {
    name: 'a relay that relays nothing is believed for ever',
    file: 'src/node/reliable/lanes.ts',
    find: 'if (isSilent) nextHop.doubt(peer)',
    put: 'if (isSilent && isOnline(peer)) nextHop.doubt(peer)',
    test: 'node/relay/next-hop.attacks',
    title: 'an answer arrives, for any dead routes that a member offers meanwhile'
  },
  {
    name: 'a sender may name relays by itself',
    file: 'src/node/messaging/verify.ts',
    find: 'if (isRelayed(decoded.header)) return',
    put: 'if (isRelayed(decoded.header) && lane !== null) return',
    test: 'node/relay/origin-signature',
    title: 'the origin alone answers for the content of a relayed frame'
  },
  {
    name: 'every control message is relayed',
    file: 'src/node/peer-dispatch.ts',
    find: 'if (!RELAYED_CONTROLS.has(message.name)) return',
    put: 'if (message.name.length > 100) return',
    test: 'node/relay/origin-signature',
    title: 'the origin alone answers for the content of a relayed frame'
  },
  {
    name: 'requests without a message of a lane are taken to be with their node',
    file: 'src/node/requests/caller/request.ts',
    find: 'if (!this.sending.isQueued) this.reported.liveness.onHeartbeat()',
    put: 'void this.sending.isQueued',
    test: 'node/requests/recovery.orphans',
    title:
      'requests that a build before left without a message of a lane are asked for again after the start, once their node is linked'
  },
  {
    name: 'nobody checks for orphans',
    file: 'src/node/requests/recovery.ts',
    find: 'this.#timer = this.#deps.clock.every(CHECK_MS, () => void this.check())',
    put: 'this.#timer = null',
    test: 'node/requests/recovery.orphans',
    title: 'a request that only the ledger knows is reported as an orphan, and sent again'
  },
  {
    name: 'a request is sent again though its lane still delivers it',
    file: 'src/node/requests/caller/peer-queue.ts',
    find: 'if (!isLost || request.sending.isQueued) continue',
    put: 'if (!isLost) continue',
    test: 'node/requests/recovery.orphans',
    title: 'a request is asked for again once while its node says nothing, and not again before that message arrives'
  },
  {
    name: 'a copy whose record was removed leaves no trace',
    file: 'src/node/requests/callee/record.ts',
    find: 'responseOf(payload, ENDINGS.removed)',
    put: 'responseOf(payload, ENDINGS.noTrace)',
    test: 'node/requests/callee/record',
    title: 'a copy whose record was removed while it arrived was not done: its caller may ask once more'
  }
]
