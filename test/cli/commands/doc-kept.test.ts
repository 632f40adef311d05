import test, { type Assert } from 'brittle'
import type { DocumentDetail } from '../../../src/ports/document-api.js'
import { fakeHome } from '../command-line.js'
import { documentDetail, peer } from '../samples.js'

const REASON = 'its member is over its share: 256 documents that nobody uses here'

/** A document of which a stream of mallory is left out. */
function lacking(blocks: number): DocumentDetail {
  const left = [{ node: { id: 'm', name: 'mallory' }, streams: 1, reason: REASON }]
  return { ...documentDetail('notes'), blocks, following: false, left }
}

test('doc ls and doc show say whether all of a document is kept here, a part or nothing, and why', async (t: Assert) => {
  let detail = documentDetail('notes')
  const { run: cli } = await fakeHome(t, {
    calls: { 'documents.list': () => ({ documents: [detail], problems: [] }), 'documents.show': () => detail }
  })
  const kept = async (): Promise<string | undefined> =>
    (await cli(['doc', 'ls'])).stdout.split('\n')[1]?.split(/ {2,}/)[4]
  t.is(await kept(), 'yes')
  detail = lacking(3)
  t.is(await kept(), 'part')
  detail = lacking(0)
  t.is(await kept(), 'no')
  const { stdout } = await cli(['doc', 'show', 'notes'])
  t.ok(stdout.includes(`1 stream of mallory: ${REASON}`), stdout)
})

test('peers show says what a member makes this node keep of documents, once that is something', async (t: Assert) => {
  let mallory = peer('mallory')
  const { run: cli } = await fakeHome(t, { calls: { 'peers.show': () => mallory } })
  t.absent((await cli(['peers', 'show', 'mallory'])).stdout.includes('documents'))
  mallory = peer('mallory', { documents: { ...mallory.documents, bytes: 1_048_576, leftOut: 44 } })
  const { stdout } = await cli(['peers', 'show', 'mallory'])
  t.ok(stdout.includes('1.0 MiB stored for documents unused here, limit 256.0 MiB; 44 streams left out'), stdout)
})
