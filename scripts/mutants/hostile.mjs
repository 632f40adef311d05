// One-line faults in what keeps a hostile member from ending or filling other nodes. Part of the list in list.mjs.

/** @type {readonly import('./list.mjs').Mutant[]} */
export const HOSTILE_MUTANTS = [
  {
    name: 'all that a peer asks for is read at once',
    file: 'src/adapters/mesh/links/guarded-mux.ts',
    find: 'turns.apply(harmless) : harmless',
    put: 'harmless : harmless',
    test: 'adapters/mesh/links/request-turns',
    title: 'a peer that asks for all large blocks of a core at once has few of them read at once'
  },
  {
    name: 'blocks are read for a peer that reads none',
    file: 'src/adapters/mesh/links/request-turns.ts',
    find: ' && this.#deps.isDrained()',
    put: '',
    test: 'adapters/mesh/links/request-turns',
    title: 'each request is answered once unless its peer gives it up'
  },
  {
    name: 'a member pays for no checks of what it asks over its A2A binding',
    file: 'src/node/gateway/task-index.ts',
    find: 'if (member !== null) this.#members.set',
    put: 'if (member === null) this.#members.set',
    test: 'node/gateway/check-share',
    title:
      'requests of a member over its A2A binding are checked in its share of time: over it the task waits, and those of others do not'
  },
  {
    name: 'requests that a start takes up again pay for no checks',
    file: 'src/node/agents/check-share.ts',
    find: 'this.payers === null ? UNREAD',
    put: 'this.payers === null ? peer',
    test: 'node/gateway/check-share',
    title: 'after a start the requests of members have one share until the gateway has read its tasks'
  },
  {
    name: 'a line of a watch grows without bound until it ends',
    file: 'src/adapters/control/answer-lines.ts',
    find: 'if (splitter.openBytes > maxBytes) throw tooLong(maxBytes)',
    put: '',
    test: 'adapters/control/answer-lines',
    title: 'a line over its limit ends the answer with PAYLOAD_TOO_LARGE, also before it ends'
  },
  {
    name: 'a class of a glob has no ranges',
    file: 'src/kit/glob.ts',
    find: "const isRange = char === '-' && i > 0 && i < set.length - 1",
    put: 'const isRange = false',
    test: 'kit/glob',
    title: 'stars, question marks and classes of a file name match as a regular expression would'
  },
  {
    name: 'each tree of a store holds as much in memory as its library takes by itself',
    file: 'src/adapters/mesh/cores/core-store.ts',
    find: ', globalCache: new Rache({ maxSize: MAX_CACHED_BLOCKS })',
    put: ', globalCache: new Rache()',
    test: 'adapters/mesh/cores/core-store',
    title: 'all trees of a store together hold 512 blocks in memory'
  },
  {
    name: 'a stranger may state a message of any length',
    file: 'src/adapters/mesh/links/frame-guard.ts',
    find: 'this.#bytes + stream._len > STRANGER_BYTES',
    put: 'this.#bytes > STRANGER_BYTES',
    test: 'adapters/mesh/links/frame-guard',
    title: 'a stranger that states a message of 16 MiB is cut'
  },
  {
    name: 'tasks for other nodes may fill the table',
    file: 'src/node/tasks/task-table.ts',
    find: "role === 'callee' && this.#calleeBytes > mostOfCallee",
    put: "role === 'callee' && this.#bytes > mostBytes",
    test: 'node/tasks/task-table',
    title: 'tasks for other nodes hold 16 MiB'
  },
  {
    name: 'documents of a member come as fast as they can',
    file: 'src/node/documents/fetch-share.ts',
    find: 'writer === self || isAlone(writer))',
    put: 'writer === self || !isAlone(writer))',
    test: 'node/documents/fetch-share',
    title: 'streams of a member, however many, together get 2 MiB a second'
  },
  {
    name: 'a stream does not rest',
    file: 'src/adapters/mesh/documents/stream-fetch.ts',
    find: 'if (ms === 0 || wanted() === null) return',
    put: 'if (ms >= 0 || wanted() === null) return',
    test: 'adapters/mesh/documents/document-cores',
    title: 'of a stream nothing more is asked for as long as it is to rest'
  },
  {
    name: 'an oversized block of a stream is fetched as any other',
    file: 'src/adapters/mesh/documents/stream-fetch.ts',
    find: 'if (bytes > MAX_STORED_BLOCK_BYTES) {',
    put: 'if (bytes < 0) {',
    test: 'adapters/mesh/documents/document-cores',
    title: 'of a stream with a block larger than any of a document'
  },
  {
    name: 'large blocks of a stream are asked for as small ones are',
    file: 'src/adapters/mesh/links/block-window.ts',
    find: 'this.#blocks + 1, fitting(bytes))',
    put: 'this.#blocks + 1)',
    test: 'adapters/mesh/links/block-window',
    title: 'after any block no more are asked for'
  },
  {
    name: 'checks of inputs of a member have no share',
    file: 'src/node/agents/check-share.ts',
    find: 'if (peer === self) return check()',
    put: 'if (peer === self || peer !== self) return check()',
    test: 'node/agents/check-share',
    title: 'a member whose inputs take long to check has a second of it'
  },
  {
    name: 'blocks of the log reach its engine unchecked',
    file: 'src/adapters/mesh/log/guarded-base.ts',
    find: 'checkBlock(writer.node, { core: writer.core.key, at, due })',
    put: '',
    test: 'adapters/mesh/log/guarded-base',
    title: 'a block that would end the engine sets its core aside at every node'
  },
  {
    name: 'a writer puts a block into the middle of a batch',
    file: 'src/adapters/mesh/log/guarded-base.ts',
    find: '(await link(boot)) && (await this.#checkHeads(writer))',
    put: 'await link(boot)',
    test: 'adapters/mesh/log/guarded-base',
    title: 'a block that would end the engine sets its core aside at every node'
  },
  {
    name: 'cores that the log does not name are fetched',
    file: 'src/adapters/mesh/log/guarded-base.ts',
    find: 'if (system === null && !isAdded && !(await this.#isKnown(key))) return null',
    put: '',
    test: 'adapters/mesh/log/guarded-base',
    title: 'a core that the log does not name is not fetched, for any hints; one that a member claims is'
  },
  {
    name: 'hints about the log have no limit',
    file: 'src/adapters/mesh/links/frame-guard.ts',
    find: 'new OpenChannels((bytes) => hints.take(bytes))',
    put: 'new OpenChannels(() => hints.take(0))',
    test: 'adapters/mesh/log/hostile-log',
    title: 'a member with hints at a hundred thousand cores costs nobody anything, and one that continues is cut'
  },
  {
    name: 'a channel of hints may lack its key',
    file: 'src/adapters/mesh/links/open-channels.ts',
    find: 'if ((isCore || isHints) && keyBytes !== KEY_BYTES)',
    put: 'if (isCore && keyBytes !== KEY_BYTES)',
    test: 'adapters/mesh/links/frame-guard',
    title: 'a channel of a core or of hints without a key ends the stream'
  },
  {
    name: 'numbers of channels have no bound',
    file: 'src/adapters/mesh/links/open-channels.ts',
    find: 'if (channel > MAX_CHANNEL_NUMBER)',
    put: 'if (channel > MAX_CHANNEL_NUMBER * 1000)',
    test: 'adapters/mesh/links/frame-guard',
    title: 'a channel that is closed before it is open does not give its number back'
  },
  {
    name: 'a proof of a fork may have a node too many',
    file: 'src/adapters/mesh/log/core-messages.ts',
    find: 'if (c.uint.decode(state) !== roots.length) return',
    put: 'if (c.uint.decode(state) < 0) return',
    test: 'adapters/mesh/log/core-messages',
    title: 'a proof of a fork has the roots of its tree, all of them and nothing else'
  },
  {
    name: 'an upgrade of a core may be one to no block',
    file: 'src/adapters/mesh/log/core-messages.ts',
    find: "if (length === 0) return 'an upgrade to nothing'",
    put: '',
    test: 'adapters/mesh/log/core-messages',
    title: 'an upgrade to no block at all is refused, after any earlier messages'
  },
  {
    name: 'blocks that a peer says it has are not counted over all its cores',
    file: 'src/adapters/mesh/links/open-channels.ts',
    find: 'this.#mappedInAll > MAX_MAPPED_BLOCKS',
    put: 'this.#mappedInAll < 0',
    test: 'adapters/mesh/links/frame-guard',
    title: 'blocks that a peer says it has are counted over all its cores, each once'
  },
  {
    name: 'mistakes of packages at bytes of a peer are thrown on',
    file: 'src/adapters/mesh/links/guarded-mux.ts',
    find: 'if (!isMistake(error)) return error',
    put: 'if (isMistake(error)) return error',
    test: 'adapters/mesh/links/guarded-mux',
    title: 'a mistake of a package at what a peer sent ends the stream and nothing else'
  },
  {
    name: 'a core of the log is read without end',
    file: 'src/adapters/mesh/log/core-share.ts',
    find: "return limit.isKnown ? 'over' : 'wait'",
    put: "return 'read'",
    test: 'adapters/mesh/log/guarded-base',
    title: 'of a core over its share every node reads the same blocks and fetches no more'
  },
  {
    name: 'a core of the log is fetched beyond its share',
    file: 'src/adapters/mesh/log/guarded-base.ts',
    find: 'const end = frozen ? nodes.length : last',
    put: 'const end = nodes.length + 256',
    test: 'adapters/mesh/log/guarded-base',
    title: 'of a core over its share every node reads the same blocks and fetches no more'
  },
  {
    name: 'a core of the owner is set aside before the log says whose it is',
    file: 'src/adapters/mesh/log/core-share.ts',
    find: "return limit.isKnown ? 'over' : 'wait'",
    put: "return 'over'",
    test: 'adapters/mesh/log/guarded-base',
    title: 'a core over the share of members waits until it is known that it is one of the owner'
  },
  {
    name: 'a core that waited for its owner is never read on',
    file: 'src/adapters/mesh/log/log-writers.ts',
    find: 'if (known.length > 0 || isNewlyRevoked) this.#deps.onLimits()',
    put: '',
    test: 'adapters/mesh/log/log-writers',
    title: 'a core that waits for its owner to be named is read on once'
  },
  {
    name: 'a writer goes on appending beyond its share of the log',
    file: 'src/adapters/mesh/log/log.ts',
    find: 'this.#base.writable && !this.#own.isFull ?',
    put: 'this.#base.writable ?',
    test: 'adapters/mesh/log/log-share.prove',
    title:
      'a node that wrote its share of the log reports it, and other writers append its entries and the entries it carries'
  },
  {
    name: 'a member takes another core as often as it likes',
    file: 'src/domain/membership/log-share.ts',
    find: 'had.size < LOG_SHARE_LIMITS.maxCores',
    put: 'had.size > 0',
    test: 'domain/membership/fold-core',
    title: 'a member has eight cores in its life'
  },
  {
    name: 'a member fills the cores of other writers',
    file: 'src/adapters/mesh/log/entry-intake.ts',
    find: '|| this.#authorRates.take(by, byteLength)',
    put: '|| true',
    test: 'adapters/mesh/log/entry-intake',
    title:
      'a writer carries 4 MiB of one author, for any relays, and then 64 B a second; revocations and the owner always pass'
  },
  {
    name: 'blocks of a revoked writer stay on every disk',
    file: 'src/adapters/mesh/log/revoked-cores.ts',
    find: 'await giveBack(core, needed)',
    put: '',
    test: 'adapters/mesh/log/revoked-cores',
    title:
      'entries of a revoked member beyond the order of the log are removed once the owner has signed the revocation'
  },
  {
    name: 'blocks of a revoked writer go before the owner has signed',
    file: 'src/adapters/mesh/log/revoked-cores.ts',
    find: 'if (needed === null) return this.#lookAgain()',
    put: 'if (needed === null) return giveBack(this.#deps.open(key), 0)',
    test: 'adapters/mesh/log/revoked-cores',
    title:
      'entries of a revoked member beyond the order of the log are removed once the owner has signed the revocation'
  },
  {
    name: 'hints bring back what a revoked writer wrote',
    file: 'src/adapters/mesh/log/guarded-base.ts',
    find: 'writer._resume = () => resume(writer, share.end(writer.nodes.length, this.#named.get(keyToText(writer.core.key)) ?? 0))',
    put: 'writer._resume = () => resume(writer, share.end(writer.nodes.length, 1000))',
    test: 'adapters/mesh/log/guarded-base',
    title: 'only blocks that another block names come from a core of a revoked member, for any hints'
  },
  {
    name: 'blocks of a revoked writer are fetched again',
    file: 'src/adapters/mesh/log/core-share.ts',
    find: 'return isRevoked ? Math.max(at, Math.min(this.#end(at), named)) : this.#end(at)',
    put: 'return this.#end(at)',
    test: 'adapters/mesh/log/core-share',
    title: 'of a revoked member only blocks that others name are asked for'
  },
  {
    name: 'a log without blocks of a revoked writer counts as damaged',
    file: 'src/adapters/mesh/log/log-marks.ts',
    find: '(await isGivenBack(core)) ? Number.POSITIVE_INFINITY : core.contiguousLength',
    put: 'core.contiguousLength',
    test: 'adapters/mesh/log/log-marks',
    title: 'a core of which this node removed blocks is never taken for shorter'
  },
  {
    name: 'a core at which starts ended is read again at the third one',
    file: 'src/adapters/mesh/log/core-care.ts',
    find: 'if (failed >= FAILED_STARTS || isSuspect)',
    put: 'if (isSuspect)',
    test: 'adapters/mesh/log/core-care',
    title: 'the third start in a row that did not come up'
  },
  {
    name: 'a core that is left out stays so, whatever the next start would find',
    file: 'src/adapters/mesh/log/core-care.ts',
    find: 'leftOut: [], suspects: leftOut }',
    put: 'suspects: leftOut }',
    test: 'adapters/mesh/log/core-care',
    title: 'a core that is left out is tried again by the next start'
  },
  {
    name: 'a start that failed with an error counts as one that ended at a core',
    file: 'src/adapters/mesh/log/core-care.ts',
    find: 'failed: this.#stored.failed - 1 }',
    put: 'failed: this.#stored.failed }',
    test: 'adapters/mesh/log/core-care',
    title: 'a successful start, and a failed one with a reported error, are not counted'
  },
  {
    name: 'a core that is left out is read all the same',
    file: 'src/adapters/mesh/log/guarded-base.ts',
    find: 'nodes.length < ordered || (await care.mayRead(keyToText(core.key)))',
    put: 'nodes.length < ordered || (await care.mayRead(keyToText(core.key))) || true',
    test: 'adapters/mesh/log/guarded-base',
    title: 'of a core at which starts ended only what was in the order is read'
  },
  {
    name: 'invites of an admin have no share of the log',
    file: 'src/domain/membership/fold/fold.ts',
    find: "if (index === null) return full('invites of the node fill its share of the log')",
    put: 'if (index === null) return put(new Map([invite]))',
    test: 'domain/membership/invites/invite-share',
    title: 'invites of a member have a share of the log, by number'
  },
  {
    name: 'an admin revokes whom it could not have admitted',
    file: 'src/domain/membership/grant.ts',
    find: 'return fault === null ? null : `its author could not have admitted the node: ${fault}`',
    put: 'return fault === null ? null : null',
    test: 'domain/membership/fold/fold',
    title: 'an admin revokes, renames or changes nobody that it could not have admitted'
  },
  {
    name: 'nobody hands on that a member writes to another core',
    file: 'src/adapters/mesh/log/log.ts',
    find: 'for (const claim of this.#writers.claims()) void relay.hand(claim)',
    put: '',
    test: 'adapters/mesh/log/restored',
    title: 'the core of a restored writer reaches members without a link to it'
  },
  {
    name: 'pairing chain not followed',
    file: 'src/adapters/mesh/network/mesh-node.ts',
    find: 'if (!verdict.ok) return',
    put: 'if (!verdict.ok && chain.length === 0) return',
    test: 'adapters/mesh/links/impostor.prove',
    title: 'a certificate of a member that may not invite is none'
  },
  {
    name: 'pairing chain not led to the owner that the code names',
    file: 'src/adapters/mesh/pairing/join.ts',
    find: 'return fault ?? { key',
    put: 'return { key',
    test: 'adapters/mesh/links/impostor.prove',
    title: 'a member that answers the second use of its code as the owner is refused'
  },
  {
    name: 'budget off: no member has a share of answers',
    file: 'src/node/peers/busy-share.ts',
    find: 'if (!this.#shares.take(peer, counted)) this.#owed.set(peer, counted)',
    put: 'this.#shares.take(peer, counted)',
    test: 'node/gateway/mesh/inbound-calls',
    title: 'a member over its share waits while others are served'
  },
  {
    name: 'budget off: access lists take what room they like',
    file: 'src/domain/membership/fold/document.ts',
    find: 'sum > before && sum > MAX_DOCUMENT_BYTES_OF_MEMBER',
    put: 'sum > before && sum > Number.POSITIVE_INFINITY',
    test: 'domain/membership/fold/document',
    title:
      'access lists and streams of a member have a share of the view, for any number of documents; the others keep theirs'
  },
  {
    name: 'guardrails end at the gateway',
    file: 'src/compose/open-mcp.ts',
    find: "principal.kind === 'token' ? guardedApi(apiFor(principal), rules) : apiFor(principal)",
    put: "principal.kind === 'token' && rules === null ? guardedApi(apiFor(principal), rules) : apiFor(principal)",
    test: 'e2e/mcp',
    title: 'guardrails and the limit of calls bind a client with a token at /mcp'
  },
  {
    name: 'share of documents off',
    file: 'src/domain/document/share.ts',
    find: '.slice(0, limit)',
    put: '',
    test: 'node/documents/shares',
    title: 'a member that announces 952 documents, with names that sort first'
  },
  {
    name: 'share of documents by order of announcement',
    file: 'src/domain/document/share.ts',
    find: 'turns.sort((a, b) => a.turn - b.turn || compareText(a.payer, b.payer))',
    put: '',
    test: 'domain/document/share',
    title:
      'the stored streams do not depend on the order of announcements, and each stream is stored once or left out for a reason'
  },
  {
    name: 'share of documents in bytes off',
    file: 'src/node/documents/shares.ts',
    find: '+ wanted <= maxBytes)',
    put: '+ wanted >= 0 * maxBytes)',
    test: 'node/documents/shares',
    title: 'a member makes another node keep 256 MiB of its documents'
  },
  {
    name: 'share of documents asked for nothing by their cores',
    file: 'src/adapters/mesh/documents/document-core.ts',
    find: 'this.#deps.mayHold(core.byteLength - this.#before)',
    put: 'core.byteLength >= 0',
    test: 'adapters/mesh/documents/document-cores',
    title: 'of a stream over the share only the requested blocks arrive, until the share has space'
  },
  {
    name: 'a document is removed although somebody used it before its writer was revoked',
    file: 'src/node/documents/replication-set.ts',
    find: "&& this.#useOf(record) === 'none'",
    put: "&& this.#useOf(record) !== 'open'",
    test: 'node/documents/shares',
    title: 'documents that a revoked member alone wrote'
  },
  {
    name: 'what is sent without credit is taken',
    file: 'src/domain/channel/credit.ts',
    find: 'return window.spent < window.limit + URGENT_CREDIT ?',
    put: 'return window.limit > 0 ?',
    test: 'node/peers/peer-table',
    title: 'a peer that sends more than its credit is cut'
  },
  {
    name: 'a member that wants little credit passes those that wait for more',
    file: 'src/node/peers/credit-shares.ts',
    find: 'isSpent ||= ownMs === 0 && allMs > 0',
    put: 'isSpent = ownMs === 0 && allMs > 0',
    test: 'node/peers/credit-shares',
    title:
      'of members that send much none gets less than half of the share of another, and together they get no more than their share'
  },
  {
    name: 'a busy node gives credit as an idle one',
    file: 'src/node/peers/link-channel.ts',
    find: 'if (!this.#deps.isBusy()) return this.#give(more)',
    put: 'return this.#give(more)',
    test: 'node/peers/peer-table',
    title: 'while others use a node, members that send much get 5,000 tokens a second each'
  }
]
