// Faults in what carries messages of others and in what takes them; see list.mjs.

/** @type {readonly import('./list.mjs').Mutant[]} */
export const HOPS_MUTANTS = [
  {
    name: 'the signature of the origin is not checked',
    file: 'src/domain/envelope/origin.ts',
    find: 'return verify(originBytes(read, bytes, binding), signature, keyFromText(origin))',
    put: 'return verify !== undefined && originBytes(read, bytes, binding).byteLength > 0 && keyFromText(origin).byteLength === 32',
    test: 'node/forwarded',
    title: 'nobody can put words into the mouth of another node: a forged origin, an altered body or header'
  },
  {
    name: 'a signature is good for every way',
    file: 'src/domain/envelope/origin.ts',
    find: 'hash(keyFromText(mesh), keyFromText(firstHop), hash(',
    put: 'hash(keyFromText(mesh), keyFromText(firstHop).subarray(32), hash(',
    test: 'node/forwarded',
    title: 'a signature is good for one mesh, one recipient and one way'
  },
  {
    name: 'the body is not signed',
    file: 'src/domain/envelope/origin.ts',
    find: 'hash(bytes.subarray(codecAt))',
    put: 'hash(bytes.subarray(codecAt, codecAt))',
    test: 'domain/envelope/origin',
    title: 'any changed bit that is not of the way makes it the message of nobody'
  },
  {
    name: 'hops do not weaken what passes them',
    file: 'src/node/arrivals.ts',
    find: 'party: weakened(party, powers), certified: known',
    put: 'party, certified: known',
    test: 'node/passing',
    title: 'a message is as weak as what it passed: every tier of sender, hop and target, at the hop and at the end'
  },
  {
    name: 'who carries a message lends it its own power',
    file: 'src/node/passing.ts',
    find: 'own === null ? party : weakened(party, [own])',
    put: 'own === null ? party : weakened(party, [])',
    test: 'node/passing',
    title: 'a message is as weak as what it passed: every tier of sender, hop and target, at the hop and at the end'
  },
  {
    name: 'the last hop is not compared with the stream',
    file: 'src/domain/routing/hops.ts',
    find: 'if ((hops.at(-1) ?? origin) !== peer)',
    put: 'if ((hops.at(-1) ?? origin) === self)',
    test: 'node/forwarded',
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
    file: 'src/node/forwarded.ts',
    find: 'this.#replays.add(message)',
    put: 'void message',
    test: 'node/forwarded',
    title: 'no message counts twice, by whatever way it comes again'
  },
  {
    name: 'replies are carried without an exchange',
    file: 'src/node/passing.ts',
    find: 'this.#exchange({ sender, recipient, header }) !== null',
    put: 'this.#exchange({ sender, recipient, header }) !== undefined',
    test: 'node/passing',
    title: 'a reply is carried back along an exchange that was carried, once, and no other way'
  },
  {
    name: 'an exchange with one agent of a node is one with all of them',
    file: 'src/domain/routing/exchanges.ts',
    find: 'from < to ? `${peer}\\n${from}\\n${to}\\n${correlationId}`',
    put: "from !== '' ? `${peer}\\n${correlationId}`",
    test: 'node/inbox.agents',
    title: 'a stream to one agent is no way into another one of the node'
  },
  {
    name: 'an operator may write along the exchanges of others',
    file: 'src/domain/routing/exchanges.ts',
    find: 'this.#byOpener.get(openerText({ peer, correlationId, from: to })) ?? []',
    put: '[...this.#byOpener.values()].flat()',
    test: 'node/conversations',
    title: 'whatever is open, a reply is let in only between the two agents of one exchange'
  },
  {
    name: 'words about messages that were never passed on are relayed',
    file: 'src/node/passing.ts',
    find: 'if (passed?.next !== peer || passed.to !== body.to) return',
    put: 'if (passed === undefined) return this.#tell(body.origin, body)\n    if (passed.to !== body.to) return',
    test: 'node/passing.words',
    title: 'words about undelivered messages that a peer has relayed'
  },
  {
    name: 'answers that are carried count for who gives them',
    file: 'src/node/passing.ts',
    find: '(this.#exchange(passenger)?.peer ?? peer)',
    put: 'peer',
    test: 'node/passing',
    title: 'the answers that peers have a node give do not use up what is carried for that node'
  },
  {
    name: 'an answer that a hop refuses is not sent again',
    file: 'src/node/answers.ts',
    find: 'AWAY.has(code) && this.#backlogs.refused(to, id, parts.clock.monotonic())',
    put: 'AWAY.has(code) && to === id',
    test: 'node/answers.carried',
    title: 'more answers at once than a hop carries all arrive'
  },
  {
    name: 'any word of a hop has any answer sent again',
    file: 'src/node/ways.ts',
    find: 'handed === undefined || handed.via !== peer || parseAddress',
    put: 'handed === undefined || parseAddress',
    test: 'node/answers.carried',
    title: 'only the hop that was given an answer can have it sent again, and once'
  },
  {
    name: 'answers that are refused are tried as often as ever',
    file: 'src/node/backlogs.ts',
    find: 'FIRST_WAIT_MS * 2 ** backlog.failures++',
    put: 'FIRST_WAIT_MS * 1 ** backlog.failures++',
    test: 'node/answers.carried',
    title: 'an answer that a hop refuses for lack of room is sent again, less and less often, under an id of its own'
  },
  {
    name: 'answers outlive their time as long as they are tried',
    file: 'src/node/backlogs.ts',
    find: "if (answer.expiresAt <= now) this.#end(backlog.take(answer), 'expired')",
    put: "if (answer.expiresAt <= 0) this.#end(backlog.take(answer), 'expired')",
    test: 'node/answers',
    title: 'an answer to a caller who is there but has no room goes out when it has, and lives no longer than it may'
  },
  {
    name: 'an answer that is dropped leaves its exchange open',
    file: 'src/node/answers.ts',
    find: "conversations.end(thread)\n    if (ending !== 'crowded') return",
    put: "if (ending === 'taken') conversations.end(thread)\n    if (ending !== 'crowded') return",
    test: 'node/answers',
    title: 'the exchange of an answer that had to make room, or has no caller any more, is over'
  },
  {
    name: 'a reply that did not arrive has ended its exchange at the hop',
    file: 'src/node/passing.ts',
    find: "if (did?.what !== 'ended') return",
    put: "if (did?.what !== 'ended' || did.exchange.from !== '') return",
    test: 'node/answers.carried',
    title: 'an answer that the second hop refuses comes again along the exchange of the first'
  },
  {
    name: 'who has most makes room in a full table only when it is idle',
    file: 'src/domain/routing/exchanges.ts',
    find: '!(hasMore || this.#isIdle(oldest, now))',
    put: '!(hasMore && this.#isIdle(oldest, now))',
    test: 'domain/routing/exchanges',
    title: 'in a full table who has most makes room: nobody with a fair share loses what is in use, nor is refused'
  },
  {
    name: 'use does not keep an exchange',
    file: 'src/domain/routing/exchanges.ts',
    find: '    exchange.usedAt = now\n',
    put: '',
    test: 'node/passing.exchanges',
    title: 'progress keeps the exchange of long work in use'
  },
  {
    name: 'exchanges that are carried make no room',
    file: 'src/node/passing.ts',
    find: 'maxOpen: 65_536, idleMs: 600_000',
    put: 'maxOpen: 65_536',
    test: 'node/passing.exchanges',
    title: 'what a node has asked in vain gives way to what it asks later; what it still waits for does not'
  },
  {
    name: 'neighbours that were not asked answer too',
    file: 'src/node/questions.ts',
    find: 'if (open?.missing.delete(peer) !== true) return',
    put: 'open?.missing.delete(peer)\n    if (open === undefined) return',
    test: 'node/questions',
    title: 'each that was asked is heard once, on its own question, until all have answered or the time is over'
  },
  {
    name: 'vain searches are forgotten at once',
    file: 'src/node/routes.ts',
    find: 'peer !== to && !isVain(peer)',
    put: 'peer !== to && (!isVain(peer) || peer !== to)',
    test: 'node/routes.searches',
    title: 'a search that was in vain is not made again for whoever asks, for a while'
  },
  {
    name: 'silence during the search of another counts as having no way',
    file: 'src/node/routes.ts',
    find: 'if (except === self) for (const one of silent)',
    put: 'for (const one of silent)',
    test: 'node/routes.searches',
    title: 'whoever asks in vain hides no way: not its own, and not that of a slow neighbour'
  },
  {
    name: 'what one neighbour has no way to, none has',
    file: 'src/domain/routing/no-ways.ts',
    find: '    const of = this.#ofNeighbour.get(neighbour)\n',
    put: '    const of = this.#ofNeighbour.get(neighbour) ?? [...this.#ofNeighbour.values()][0]\n',
    test: 'node/routes.searches',
    title: 'a newcomer is asked, and those who had no way are not asked again'
  },
  {
    name: 'no neighbour is assured of a search',
    file: 'src/node/routes.ts',
    find: '(this.#allSearches.take() || this.#assured.take(peer))',
    put: 'this.#allSearches.take()',
    test: 'node/routes.searches',
    title: 'many neighbours that ask for all kinds of nodes leave each other one its searches, and this node its answers'
  },
  {
    name: 'what a person of this node denies has passed before',
    file: 'src/node/outbox.ts',
    find: 'isTold ? null : path',
    put: 'path',
    test: 'node/inbox.here',
    title: 'a call within the node that a person denies is one decision and one line'
  },
  {
    name: 'what is not even looked at within the node is not on record',
    file: 'src/node/inbox.ts',
    find: "      this.#parts.router.record('refusal', verified.refusal, { peer: null, header })\n",
    put: '',
    test: 'node/inbox.here',
    title: 'one whose sender goes away under it is refused to whoever sent it, on record once'
  },
  {
    name: 'replies go by the way that was found last',
    file: 'src/node/ways.ts',
    find: 'return way !== null && peers.isOnline(way) ? way : routes.next(node)',
    put: 'return routes.next(node) ?? way',
    test: 'node/ways.attacks',
    title: 'an answer goes back the way its request came, whatever ways others offer and use meanwhile'
  },
  {
    name: 'a hop looks for a way of its own for replies',
    file: 'src/node/passing.ts',
    find: 'const next = way !== null && peers.isOnline(way) ? way : routes.next(nodeId)',
    put: 'const next = routes.next(way === null ? nodeId : nodeId)',
    test: 'node/ways',
    title: 'two nodes on the way carry a message and its answer as well'
  },
  {
    name: 'what follows an opening looks for a way of its own',
    file: 'src/node/ways.ts',
    find: 'if (isOpening && thread !== null) conversations.setWay(thread, via)',
    put: 'if (isOpening && thread === null) return',
    test: 'node/ways.attacks',
    title: 'what follows on a thread goes the way that its opening went'
  },
  {
    name: 'an exchange that is open again has lost its way',
    file: 'src/node/passing.ts',
    find: 'this.#setWays(did.exchange, { [origin]: from, [to]: next })',
    put: 'void [origin, from, next, to]',
    test: 'node/answers.carried',
    title: 'an answer that the second hop refuses comes again along the exchange of the first'
  },
  {
    name: 'nobody is assured of being carried',
    file: 'src/node/carry-rates.ts',
    find: 'return bytes <= ASSURED_BYTES && this.#assured.take(key) && this.#reserve.take()',
    put: 'return false',
    test: 'node/passing',
    title: 'nodes that have much carried together do not keep out one that has little carried'
  },
  {
    name: 'who has much carried uses up what is assured',
    file: 'src/node/carry-rates.ts',
    find: 'ASSURED_BYTES && this.#assured.take(key) && this',
    put: 'ASSURED_BYTES && this',
    test: 'node/carry-rates',
    title: 'however many nodes have much carried, one that has little is carried too, and no more than a neighbour takes'
  },
  {
    name: 'the bytes that are carried for all are not bounded',
    file: 'src/node/carry-rates.ts',
    find: 'this.#inAll.take() && this.#bytesInAll.take(bytes)',
    put: 'this.#inAll.take()',
    test: 'node/carry-rates',
    title: 'however many nodes have much carried, one that has little is carried too, and no more than a neighbour takes'
  },
  {
    name: 'a neighbour that lies about its ways is believed again at once',
    file: 'src/domain/routing/hops.ts',
    find: 'isDoubted ? 1 : 0',
    put: 'isDoubted ? 0 : 0',
    test: 'node/ways.attacks',
    title: 'a neighbour that says it has a way and carries nothing on comes after one that does'
  }
]
