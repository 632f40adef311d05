import { testMesh } from '../../support/nodes.js'
import type { Teardown } from '../../support/tmp.js'
import { judge, readExpected, type Report } from './report.js'
import { runSuite } from './suite.js'
import { startWorld } from './world.js'

/** Runs all cases and clients against two nodes in processes of their own. */
export async function conform(t: Teardown): Promise<Report> {
  const world = await startWorld(t, await testMesh(t))
  return judge(await runSuite(world), readExpected())
}
