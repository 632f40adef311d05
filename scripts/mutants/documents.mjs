// Faults in the rules of shared documents; see list.mjs.

const replica = 'domain/document/replica'

/** @type {readonly import('./list.mjs').Mutant[]} */
export const DOCUMENT_MUTANTS = [
  {
    name: 'a reader of a document lacks stored blocks that no event announced yet',
    file: 'src/node/documents/document-replica.ts',
    find: 'if (this.#fed.offerStored(this.#counted.keys()) || !this.#isWhole) await this.feed()',
    put: 'if (!this.#isWhole) await this.feed()',
    test: 'node/documents/open-document',
    title: 'a reader gets all blocks that are stored, also those that no event announced yet'
  },
  {
    name: 'what a store of documents that was begun anew lacks is forgotten',
    file: 'src/node/documents/local-streams.ts',
    find: 'if (known.stream !== null && known.blocks > 0) this.#deps.onLost(name, known.stream, known.blocks)',
    put: '',
    test: 'node/documents/local-streams',
    title:
      'content missing from a store of documents that was begun anew is lost: it is refused, also after a restart, and never shown as empty'
  },
  {
    name: 'streams that were left before the mesh heard of them are read no more',
    file: 'src/node/documents/open-documents.ts',
    find: '[own, ...streams.unheardOf(name)]',
    put: '[own]',
    test: 'node/documents/local-streams',
    title:
      'edits made before the mesh knew of them are there, and sent to the others, though the list of own streams is lost'
  },
  {
    name: 'doctor reads blocks alone',
    file: 'src/adapters/mesh/cores/store-scan.ts',
    find: 'for await (const _ of entries);',
    put: 'void entries',
    test: 'adapters/mesh/cores/store-scan',
    title: 'reading all entries of a store fails for any damaged entry'
  },
  {
    name: 'a member writes with the clientID of another',
    file: 'src/domain/document/stream.ts',
    find: 'if (this.#ids.ownerOf(client) !== this.key)',
    put: 'if (this.#ids.ownerOf(client) === null)',
    test: replica,
    title: 'an update with the clientID of another ends its stream there; earlier updates count, others continue'
  },
  {
    name: 'an update may have any size',
    file: 'src/domain/document/update/update.ts',
    find: 'if (bytes.byteLength > limits.maxBytes)',
    put: 'if (bytes.byteLength < 0)',
    test: 'domain/document/update/update',
    title: 'an update may have 256 KiB and 16,384 parts, and no more'
  },
  {
    name: 'an edit is cut inside of a character',
    file: 'src/domain/document/update/cut.ts',
    find: 'while (((text[end] ?? 0) & 0xc0) === 0x80) end--',
    put: '',
    test: 'domain/document/update/cut',
    title: 'large updates of a program are cut before others get them, and repeating them changes nothing'
  },
  {
    name: 'an edit in pieces fills a document in the middle of it',
    file: 'src/domain/document/local-edits.ts',
    find: 'if (cutting.isCut && isFull())',
    put: 'if (cutting.isCut && sessions < 0)',
    test: 'domain/document/local-edits',
    title: 'an edit in pieces of which others could take the first ones only'
  },
  {
    name: 'a document grows without an end',
    file: 'src/domain/document/document-size.ts',
    find: 'return this.#measured >= this.#full',
    put: 'return this.#measured > this.#full * 2',
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
    file: 'src/adapters/mesh/documents/document-cores.ts',
    find: '&& following.mayHave(peer))',
    put: ')',
    test: 'adapters/mesh/documents/document-cores',
    title: 'a peer without access to a stream gets none of its blocks, for any channel that it opens by the key'
  },
  {
    name: 'what a member writes counts though it lost the right to',
    file: 'src/domain/membership/fold/document.ts',
    find: '(lengths[stream] ?? 0) : 0',
    put: '(lengths[stream] ?? 0) : Number.POSITIVE_INFINITY',
    test: 'domain/membership/fold/document',
    title:
      'of a member with the right to write all blocks count; of one that lost the right as many as the list had seen'
  },
  {
    name: 'who may not write adds a stream',
    file: 'src/domain/membership/fold/document.ts',
    find: "memberOf(author.certificate.body)).mayWrite) return skip('its author may not write the document')\n  if (!hasPlaceFor",
    put: 'memberOf(author.certificate.body)).maySee === undefined) return skip()\n  if (!hasPlaceFor',
    test: 'domain/membership/fold/document',
    title: 'a member adds streams to documents that it may write'
  },
  {
    name: 'edits go into a stream that the log never takes',
    file: 'src/domain/membership/fold/document.ts',
    find: 'if (streams.length >= MAX_DOCUMENT_STREAMS) return false',
    put: 'if (streams.length < MAX_DOCUMENT_STREAMS) return true',
    test: 'node/documents/local-streams',
    title: 'an edit that nobody else would ever see is refused'
  },
  {
    name: 'a node uses clocks of its stream again that it did not read back',
    file: 'src/node/documents/open-document.ts',
    find: 'if (replica.lengthOf(own) < this.#deps.written(own))',
    put: 'if (replica.lengthOf(own) < 0)',
    test: 'node/documents/open-document',
    title: 'nothing is written before what the own stream holds was read back'
  },
  {
    name: 'a document is served with an edit that was refused',
    file: 'src/node/documents/document-replica.ts',
    find: ' || !this.#isWhole) await this.feed()',
    put: ') await this.feed()',
    test: 'node/documents/open-document',
    title: 'a refused edit changes nothing, is sent to nobody, and leaves the clientIDs of programs alone'
  },
  {
    name: 'half of a document is served',
    file: 'src/node/documents/document-replica.ts',
    find: 'if (this.#fed.offerStored(this.#counted.keys()) || !this.#isWhole) await this.feed()',
    put: '',
    test: 'node/documents/open-document',
    title: 'a replica with unread blocks is neither read nor edited, and the next use reads on'
  },
  {
    name: 'a watch of a document goes on when the right to see it is gone',
    file: 'src/node/api/documents.ts',
    find: 'whileAllowed(node, () => void node.documents.known.find(known.record.name, by), end)',
    put: 'whileAllowed(node, () => {}, end)',
    test: 'node/api/document-watches',
    title: 'a caller that loses the right to write or see a document no longer holds or watches it'
  },
  {
    name: 'a stream of a document may be named in another one',
    file: 'src/domain/membership/fold/document.ts',
    find: "if ((records.documentOfCore(coreKey) ?? name) !== name) return skip('the stream is one of another document')",
    put: '',
    test: 'domain/membership/fold/document',
    title: 'a core is a stream of one document only'
  },
  {
    name: 'a snapshot that holds less of a stream takes the place of another',
    file: 'src/domain/membership/fold/document.ts',
    find: 'if (before.some(([stream, length]) => lengthOf(lengths, stream) < length)) return false',
    put: '',
    test: 'domain/membership/fold/document',
    title: 'a snapshot holds at least 1,024 blocks more'
  },
  {
    name: 'who may not write puts a snapshot in force',
    file: 'src/domain/membership/fold/document.ts',
    find: "memberOf(author.certificate.body)).mayWrite) return skip('its author may not write the document')\n  if (serial",
    put: 'memberOf(author.certificate.body)).maySee === undefined) return skip()\n  if (serial',
    test: 'domain/membership/fold/document',
    title: 'a member that may write a document puts a snapshot of it in force'
  },
  {
    name: 'a snapshot of another access list is put in force',
    file: 'src/domain/membership/fold/document.ts',
    find: "if (serial !== (record.access?.access.serial ?? 0)) return skip('it was made under another access list')",
    put: '',
    test: 'domain/membership/fold/document',
    title: 'a snapshot that was made under another access list'
  },
  {
    name: 'a certificate takes back what the snapshot in force holds',
    file: 'src/domain/document/counted.ts',
    find: 'Math.max(lengthOf(access?.lengths ?? {}, stream), lengthOf(snapshot?.lengths ?? {}, stream))',
    put: 'lengthOf(access?.lengths ?? {}, stream)',
    test: 'domain/membership/fold/document',
    title:
      'of a member that lost the right by its certificate the blocks in the snapshot in force count; a list that repeats it ends it'
  },
  {
    name: 'a stream of a document begins earlier again',
    file: 'src/adapters/mesh/documents/document-core.ts',
    find: 'if (this.#isClosed || blocks <= this.#beginning.blocks) return',
    put: 'if (this.#isClosed) return',
    test: 'adapters/mesh/documents/document-cores.beginning',
    title: 'of a stream that begins later nothing before is left'
  },
  {
    name: 'where a stream of a document begins is forgotten at a restart',
    file: 'src/adapters/mesh/documents/document-core.ts',
    find: 'this.#beginning = await beginningOf(core)',
    put: '',
    test: 'adapters/mesh/documents/document-cores.beginning',
    title: 'of a stream that begins later nothing before is left'
  },
  {
    name: 'what is before the beginning of a stream is fetched',
    file: 'src/adapters/mesh/documents/document-core.ts',
    find: 'return { core, start: blocks, end:',
    put: 'return { core, start: 0, end:',
    test: 'adapters/mesh/documents/document-cores.beginning',
    title:
      'a newcomer whose stream begins later fetches the later blocks, from nodes that have only these and from nodes that have all'
  },
  {
    name: 'a stream of any size is fetched behind its beginning',
    file: 'src/adapters/mesh/documents/document-core.ts',
    find: 'end: this.#before === null ? blocks + 1 : -1',
    put: 'end: -1',
    test: 'adapters/mesh/documents/document-cores.beginning',
    title: 'of a stream whose first block behind its beginning nobody gives'
  },
  {
    name: 'a stop takes out what the snapshot in force holds',
    file: 'src/domain/document/stream.ts',
    find: 'Math.max(at, this.floor)',
    put: 'at',
    test: 'domain/document/snapshot-in-force',
    title: 'a stop below what the snapshot in force holds'
  },
  {
    name: 'the document of a snapshot is given to Yjs unread',
    file: 'src/domain/document/snapshot.ts',
    find: 'if (stateFault(update) !== null) return null',
    put: '',
    test: 'domain/document/hostile-snapshot',
    title: 'a document that Yjs would keep apart'
  },
  {
    name: 'a snapshot says what it likes of streams of which it holds nothing',
    file: 'src/domain/document/snapshot.ts',
    find: 'return head.streams.every(isPossible) ?',
    put: 'return head.streams.length >= 0 ?',
    test: 'domain/document/hostile-snapshot',
    title: 'a snapshot in force that says of a stream what its blocks cannot have left'
  },
  {
    name: 'a whole document may have any number of parts',
    file: 'src/domain/document/update/update.ts',
    find: 'new UpdateWalk(bytes, MAX_STATE_PARTS).walk()',
    put: 'new UpdateWalk(bytes, Number.POSITIVE_INFINITY).walk()',
    test: 'domain/document/update/update',
    title: 'a whole document has as many as 2,097,152 parts'
  },
  {
    name: 'replicas with other runs are taken for the same',
    file: 'src/domain/document/same-replica.ts',
    find: 'canonicalJson(begun(one)) === canonicalJson(begun(other)) &&',
    put: '',
    test: 'domain/document/snapshot-in-force',
    title: 'replicas with equal documents differ if their sessions, or the runs of deleted content, differ'
  },
  {
    name: 'documents that stand on other items are taken for the same',
    file: 'src/domain/document/same-document.ts',
    find: 'if (!isSamePlace(one, other, { clock, roots })) return false',
    put: '',
    test: 'domain/document/same-document',
    title: 'a document that stands on other items than it was written beside'
  },
  {
    name: 'a document that forgot where something was is taken for the same',
    file: 'src/domain/document/same-document.ts',
    find: 'return !(other instanceof Y.Item) && (isPart || !(one instanceof Y.Item))',
    put: 'return other.deleted && (isPart || one.deleted)',
    test: 'domain/document/same-document',
    title: 'a document that stands on other items than it was written beside'
  },
  {
    name: 'a snapshot with gaps is put in force',
    file: 'src/domain/document/replica.ts',
    find: 'if (isInForce && (hasGaps ||',
    put: 'if (isInForce && (',
    test: 'domain/document/snapshot-in-force',
    title: 'a document with gaps gives no snapshot in force: the content of a gap follows from more than its blocks'
  },
  {
    name: 'a snapshot that differs from what is here is used',
    file: 'src/node/documents/snapshots/snapshots.ts',
    find: "if (result !== 'incomplete') return result",
    put: "if (result !== 'incomplete') return 'same'",
    test: 'node/documents/snapshots/snapshots.compaction',
    title:
      'a snapshot that differs from the document of its streams is refused by nodes with the streams, and they keep their blocks'
  },
  {
    name: 'a snapshot is used before the owner has signed it',
    file: 'src/node/documents/snapshots/snapshots.ts',
    find: 'if (!(await this.#isSigned(snapshot))) return',
    put: '',
    test: 'node/documents/snapshots/snapshots.compaction',
    title: 'a snapshot that the owner has not signed removes no block, also after a restart'
  },
  {
    name: 'a snapshot that says more of a stream than there is lets go of it',
    file: 'src/node/documents/snapshots/snapshots.ts',
    find: 'if (!(await this.#hasLengths(snapshot))) return this.#jobs.lookIn(name, AGAIN_MS)',
    put: '',
    test: 'node/documents/snapshots/snapshots.compaction',
    title: 'a snapshot that says more of a stream than there is lets go of no block'
  },
  {
    name: 'a node asks with a timer more at each change for a snapshot that it cannot use',
    file: 'src/node/documents/snapshots/snapshots.ts',
    find: 'clock.clear(this.#timers.get(name) ?? null)',
    put: '',
    test: 'node/documents/snapshots/snapshots.compaction',
    title: 'of snapshots that nobody can use there is one timer at most'
  },
  {
    name: 'snapshots that nobody could use stay on disk',
    file: 'src/node/documents/snapshots/snapshots.ts',
    find: 'await this.used.tidy(name)\n    const snapshot',
    put: 'const snapshot',
    test: 'node/documents/snapshots/snapshots.compaction',
    title: 'a member that makes no snapshots itself removes the unusable ones'
  },
  {
    name: 'who has a part believes a snapshot at once',
    file: 'src/node/documents/snapshots/snapshots.ts',
    find: 'if (!hasSome || this.#patience.has(coreKey)) return true',
    put: 'return true',
    test: 'node/documents/snapshots/snapshots.compaction',
    title: 'a node with a part of the blocks of a snapshot waits a while for the rest, to compare'
  },
  {
    name: 'a core of a document counts as signed before the owner signed it',
    file: 'src/adapters/mesh/log/signed-view.ts',
    find: 'entry.seq < this.#base.view.core.core.state.length',
    put: 'entry.seq >= 0',
    test: 'adapters/mesh/log/log.signed.prove',
    title: 'a core of a document is signed once'
  },
  {
    name: 'a document that somebody is about to open is removed',
    file: 'src/node/documents/documents.ts',
    find: 'if (this.#open.isInUse(record.name)) throw',
    put: "if (this.#open.isInUse('')) throw",
    test: 'node/documents/documents.forget',
    title:
      'a document that somebody wants in the very moment in which it is removed is either in use, or goes and comes back'
  },
  {
    name: 'removed documents have no limit',
    file: 'src/domain/membership/fold/document.ts',
    find: 'if (countOf(index.removed, by) >=',
    put: "if (countOf(index.removed, '') >=",
    test: 'domain/membership/fold/document',
    title: 'a member makes a bounded number of documents at a time, and removes a bounded number in its life'
  },
  {
    name: 'any member removes a document from the mesh',
    file: 'src/domain/membership/fold/document.ts',
    find: "if (!mayRestrict({ owner: mesh.owner, creator, access: null }, by)) return skip('its author may not remove the document')",
    put: '',
    test: 'domain/membership/fold/document',
    title: 'nothing is done to a removed document, and nobody but its creator and the owner of the mesh removes one'
  },
  {
    name: 'a change beyond a limit of the log waits for its timeout',
    file: 'src/adapters/mesh/log/submission.ts',
    find: 'if (tried?.isFull !== true) return',
    put: 'if (tried !== null) return',
    test: 'adapters/mesh/log/submission',
    title: 'an entry beyond a limit of the log fails at once, with the limit, and is offered to nobody'
  },
  {
    name: 'texts of XML in no element are typed over',
    file: 'src/domain/document/shared-types.ts',
    find: "edit.type === 'text' && found !== undefined && isXmlTexts(found)",
    put: 'found === null',
    test: 'domain/document/shared-types',
    title: 'texts of XML outside of elements are read as texts, and not overwritten by a type'
  },
  {
    name: 'the marks of the documents store are not compared',
    file: 'src/node/documents/marks.ts',
    find: 'Math.max(0, marked - this.#length(stream))',
    put: 'Math.max(0, marked - marked - this.#length(stream))',
    test: 'node/documents/marks',
    title: 'a document that a node with nobody else lost is refused, never shown as empty'
  },
  {
    name: 'the marks of the documents store are not kept',
    file: 'src/node/documents/marks.ts',
    find: 'await store.write(DOCUMENT_MARKS, marks)',
    put: '',
    test: 'maintenance/doctor-streams',
    title:
      'content of a document that no other node has is refused until doctor --repair accepts the loss, and the rest is edited again'
  },
  {
    name: 'an access list is signed with the lengths of a store that lost blocks',
    file: 'src/node/api/documents.ts',
    find: 'if (fault !== null) throw fault',
    put: '',
    test: 'node/documents/marks',
    title:
      'a document of which this disk lost blocks is reported in status, and neither read, edited nor restricted until a member gives them'
  },
  {
    name: 'what an own stream lost since its mark is not told',
    file: 'src/node/documents/local-streams.ts',
    find: 'if (known.stream === stream && blocks < expected) this.#deps.onLost',
    put: 'if (known.stream === stream && blocks < 0) this.#deps.onLost',
    test: 'node/documents/local-streams',
    title: 'an own stream shorter than its mark is reported as lost, also before any other mark is stored'
  },
  {
    name: 'the length of an own stream is not on record when its edit is acknowledged',
    file: 'src/node/documents/local-streams.ts',
    find: 'await this.#record(stream, String(length))',
    put: '',
    test: 'node/documents/local-streams',
    title: 'an edit is on record, apart from its stream, before it is acknowledged'
  },
  {
    name: 'own streams are not compared with their lengths at the start',
    file: 'src/node/documents/marks.ts',
    find: 'Math.max(marks[stream] ?? 0, own.blocksOf(stream))',
    put: 'marks[stream] ?? 0',
    test: 'node/documents/local-streams',
    title: 'an own stream that is shorter than its recorded length is a problem'
  },
  {
    name: 'who reads a document is not told of what nobody takes',
    file: 'src/node/api/named-document.ts',
    find: 'return skipped.length === 0 ? {} : { skipped }',
    put: 'return skipped.length >= 0 ? {} : { skipped }',
    test: 'node/documents/documents',
    title: 'an unreadable part of a stream is skipped and logged with its source, and the others continue'
  }
]
