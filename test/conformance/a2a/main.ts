import { testMesh } from '../../support/nodes.js'
import type { Teardown } from '../../support/tmp.js'
import { runClients } from './clients/run-clients.js'
import { judge, readExpected, type Report } from './report.js'
import { runSuite } from './suite.js'
import { runTurns } from './turns.js'
import { startWorld } from './world.js'

/** Runs all cases and clients against two nodes in processes of their own, then a conversation with restarts. */
export async function conform(t: Teardown): Promise<Report> {
  const world = await startWorld(t, await testMesh(t))
  const results = [...(await runSuite(world)), ...(await runClients(world)), ...(await runTurns(t, await testMesh(t)))]
  return judge(results, readExpected())
}
