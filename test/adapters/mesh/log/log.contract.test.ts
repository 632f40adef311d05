import type { Assert } from 'brittle'
import { type LogSubject, memberLogContract } from '../../../contracts/member-log.js'
import { type Lab, type LabNode, threeNodes } from '../lab.js'

memberLogContract('Autobase log', async (t: Assert) => {
  const { lab, owner, admin, member } = await threeNodes(t)
  return {
    mesh: owner.mesh.meshId,
    owner: subject(lab, owner),
    admin: subject(lab, admin),
    member: subject(lab, member)
  }
})

function subject(lab: Lab, node: LabNode): LogSubject {
  return {
    id: node.id,
    sign: node.mesh.sign,
    log: node.mesh.log,
    cutOff: () => node.mesh.links.close(),
    reopen: async () => {
      const again = await lab.reopen(node)
      await again.start()
      await again.seen.until(() => again.mesh.links.list().length > 0)
      return subject(lab, again)
    },
    close: () => node.close()
  }
}
