// Faults in the rules of shared documents; see list.mjs.

const replica = 'domain/document/replica'
const ownSnapshot = 'domain/document/own-snapshot'
const hostileSnapshot = 'domain/document/hostile-snapshot'

/** @type {readonly import('./list.mjs').Mutant[]} */
export const DOCUMENT_MUTANTS = [
  {
    name: 'a member writes with the clientID of another',
    file: 'src/domain/document/stream.ts',
    find: 'return this.#ids.ownerOf(client) === this.key && (',
    put: 'return this.#ids.ownerOf(client) !== null || (',
    test: replica,
    title: 'an update with the clientID of another ends its stream there'
  },
  {
    name: 'an update may have any size',
    file: 'src/domain/document/update.ts',
    find: 'if (bytes.byteLength > UPDATE_LIMITS.maxBytes)',
    put: 'if (bytes.byteLength < 0)',
    test: 'domain/document/update',
    title: 'an update may have 256 KiB and 16,384 parts, and no more'
  },
  {
    name: 'a document grows without an end',
    file: 'src/domain/document/document-size.ts',
    find: 'return this.#measured >= full',
    put: 'return this.#measured > full * 2',
    test: replica,
    title: 'a document that is full takes nothing more'
  },
  {
    name: 'the order of a stream is ignored',
    file: 'src/domain/document/replica.ts',
    find: "if (index > stream.length) return { outcome: 'early', stops: [] }",
    put: '',
    test: replica,
    title: 'the order of a stream is kept'
  },
  {
    name: 'the last of two streams with one clientID keeps it',
    file: 'src/domain/document/client-ids.ts',
    find: 'other.stream < session.stream ? [other, session]',
    put: 'other.stream === session.stream ? [other, session]',
    test: replica,
    title: 'of two streams that come to one clientID'
  },
  {
    name: 'an access list is not asked who may write',
    file: 'src/domain/document/access.ts',
    find: 'mayWrite: maySee && passes(access.write, member)',
    put: 'mayWrite: maySee',
    test: 'domain/document/access',
    title: 'an access list lets pass whom it names'
  },
  {
    name: 'left and right of an update may be the wrong way round',
    file: 'src/domain/document/stream.ts',
    find: 'return begin !== undefined && begin <= right',
    put: 'return begin !== undefined && begin < 0',
    test: replica,
    title: 'an update whose left and right neighbour are the wrong way round'
  },
  {
    name: 'streams of a document go to everybody',
    file: 'src/adapters/mesh/document-cores.ts',
    find: '&& mayHave(peer))',
    put: ')',
    test: 'adapters/mesh/document-cores',
    title: 'a peer that may not have a stream gets nothing of it'
  },
  {
    name: 'what a member writes counts though it lost the right to',
    file: 'src/domain/document/counted.ts',
    find: '(lengths[one] ?? 0) : 0)',
    put: '(lengths[one] ?? 0) : Number.POSITIVE_INFINITY)',
    test: 'domain/membership/fold-document',
    title: 'of who may write all blocks count'
  },
  {
    name: 'who may not write adds a stream',
    file: 'src/domain/membership/fold-document.ts',
    find: 'memberOf(author.certificate.body)).mayWrite)',
    put: 'memberOf(author.certificate.body)).maySee === undefined)',
    test: 'domain/membership/fold-document',
    title: 'a member adds streams to documents that it may write'
  },
  {
    name: 'edits go into a stream that the log never takes',
    file: 'src/domain/membership/fold-document.ts',
    find: 'return last.length < MAX_DOCUMENT_STREAMS && ',
    put: 'return last.length < MAX_DOCUMENT_STREAMS || ',
    test: 'node/own-streams',
    title: 'an edit that nobody else would ever see is refused'
  },
  {
    name: 'a node uses clocks of its stream again that it did not read back',
    file: 'src/node/open-document.ts',
    find: 'if (this.#fed.lengthOf(own) < this.#parts.written(own))',
    put: 'if (this.#fed.lengthOf(own) < 0)',
    test: 'node/open-document',
    title: 'nothing is written before what the own stream holds was read back'
  },
  {
    name: 'half of a document is served',
    file: 'src/node/open-document.ts',
    find: 'if (this.#renewal.isDue || this.#isBehind) await this.#feed()',
    put: '',
    test: 'node/open-document',
    title: 'what could not be read whole nobody reads or edits'
  },
  {
    name: 'a watch of a document goes on when the right to see it is gone',
    file: 'src/node/api-documents.ts',
    find: 'whileAllowed(node, () => void node.documents.known.find(known.record.name, by), end)',
    put: 'whileAllowed(node, () => {}, end)',
    test: 'node/document-watches',
    title: 'who loses the right to write a document, or to see it'
  },
  {
    name: 'a member takes the place of the stream of another',
    file: 'src/domain/membership/fold-document.ts',
    find: 'coreKey === from)?.nodeKey === by &&',
    put: 'coreKey === from) !== undefined &&',
    test: 'domain/membership/fold-continued',
    title: 'nobody takes the place of a stream'
  },
  {
    name: 'a stream is removed though the log could still take back that another continues it',
    file: 'src/node/continued-streams.ts',
    find: 'if (!(await this.#parts.log.isStreamSigned(stream.coreKey))) isLeft = true',
    put: 'if (this.#isClosed) isLeft = true',
    test: 'node/document-compaction',
    title: 'what the log could still take back'
  },
  {
    name: 'a stream begins with something else than was named',
    file: 'src/node/continued-streams.ts',
    find: 'continues.blocks)) !== continues.hash) return false',
    put: 'continues.blocks)) === null) return false',
    test: 'node/document-compaction',
    title: 'a stream that begins with something else'
  },
  {
    name: 'a stream is continued that nobody else has',
    file: 'src/node/compaction.ts',
    find: 'if (hasOthers(view, record, self) && documents.holders(own) === 0) return false',
    put: '',
    test: 'node/document-compaction',
    title: 'a stream is not continued while nobody else'
  },
  {
    name: 'a stream of a document may be named in another one',
    file: 'src/domain/membership/fold-document.ts',
    find: "if ((records.documentOfCore(coreKey) ?? name) !== name) return skip('the stream is one of another document')",
    put: '',
    test: 'domain/membership/fold-document',
    title: 'a core is a stream of one document only'
  },
  {
    name: 'snapshots of two members wait for each other for ever',
    file: 'src/domain/document/own-snapshot.ts',
    find: 'return names.every(({ client, clock }) => client === this.#client || clock < (this.#needs.get(client) ?? 0))',
    put: 'return names.length >= 0',
    test: ownSnapshot,
    title: 'two snapshots that stand on each other are applied'
  },
  {
    name: 'the pieces of a snapshot have one order',
    file: 'src/domain/document/snapshot-pieces.ts',
    find: 'return writes === null ? null : writes.client',
    put: 'return writes === null ? 0 : 0',
    test: ownSnapshot,
    title: 'two snapshots that stand on each other are applied'
  },
  {
    name: 'where runs of text began is forgotten with the text',
    file: 'src/domain/document/own-snapshot.ts',
    find: 'const begins = [id.clock, ...runs.slice(countUpTo(runs, id.clock), countUpTo(runs, end - 1))]',
    put: 'const begins = runs.length < 0 ? [countUpTo(runs, 0)] : [id.clock]',
    test: ownSnapshot,
    title: 'text that went with what held it is refused nothing'
  },
  {
    name: 'a part of a snapshot counts',
    file: 'src/domain/document/stream.ts',
    find: 'return blocks < this.#snapshotBlocks ? 0 : blocks',
    put: 'return blocks',
    test: ownSnapshot,
    title: 'a stop within a snapshot takes back all of it'
  },
  {
    name: 'clientIDs of former streams are of nobody once their stream ended',
    file: 'src/domain/document/client-ids.ts',
    find: 'for (const key of this.#former.get(stream) ?? []) this.#close(key)',
    put: '',
    test: ownSnapshot,
    title: 'what the former stream of one that ended wrote is filled'
  },
  {
    name: 'a stream is continued by two others',
    file: 'src/domain/document/replica.ts',
    find: 'isGiven(stream) || this.#ids.heirOf(stream) !== stream',
    put: 'isGiven(stream)',
    test: ownSnapshot,
    title: 'a stream is continued by one other'
  },
  {
    name: 'a stream goes on with the clientIDs of former ones',
    file: 'src/domain/document/stream.ts',
    find: '(this.isBeginning || this.#ids.streamOf(client) === this.key)',
    put: '(this.isBeginning || this.length > 0)',
    test: ownSnapshot,
    title: 'a stream that continues others has their clientIDs and no other'
  },
  {
    name: 'what a snapshot leaves out is waited for',
    file: 'src/domain/document/block-applier.ts',
    find: 'return ids.streamOf(client) !== stream.key && ',
    put: 'return ids.streamOf(client) === null && ',
    test: hostileSnapshot,
    title: 'what a snapshot leaves out of a stream holds up nobody'
  },
  {
    name: 'sessions that are not stated are waited for',
    file: 'src/domain/document/block-applier.ts',
    find: 'else if (!stream.isBeginning) ids.endFormer(stream.key)',
    put: '',
    test: hostileSnapshot,
    title: 'sessions and streams that a continued stream does not state'
  },
  {
    name: 'as much of a snapshot waits as is sent',
    file: 'src/domain/document/snapshot-pieces.ts',
    find: 'this.#bytes + cost <= PIECE_LIMITS.maxBytes',
    put: 'cost > 0',
    test: hostileSnapshot,
    title: 'what waits of one snapshot is bounded'
  },
  {
    name: 'whatever comes, all that waits is looked at',
    file: 'src/domain/document/block-applier.ts',
    find: 'if (!this.#waiting.isAwaited(client)) return',
    put: 'this.wakeAll()',
    test: hostileSnapshot,
    title: 'whoever waits is not looked at when something else comes'
  },
  {
    name: 'documents are the same whatever the order of what they hold',
    file: 'src/domain/document/same-document.ts',
    find: '|| textOf(liveLeftOf(one, here.from)) !== textOf(liveLeftOf(other, beside.from))',
    put: '',
    test: 'domain/document/same-document',
    title: 'other content, another place, another parent'
  }
]
