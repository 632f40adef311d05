import type { Assert } from 'brittle'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import type { PairingWorld } from '../../../contracts/pairing.js'
import { meshLab } from '../lab.js'

/** An admin that is online, and newcomers that leave again, over real links. */
export async function pairingWorld(t: Assert): Promise<PairingWorld> {
  const lab = await meshLab(t)
  const admin = await lab.found('admin')
  await admin.start({ want: false })
  return {
    admin: { id: admin.id, mesh: admin.mesh.meshId, pairing: admin.mesh.pairing, log: admin.mesh.log },
    clock: systemClock(),
    join: async ({ name, code, ...options }) => {
      const node = await lab.join(name, code, options)
      await node.close()
      return node.id
    }
  }
}
