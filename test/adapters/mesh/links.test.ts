import type { Assert } from 'brittle'
import { linksContract, type LinksSubject } from '../../contracts/links.js'
import { inviteCode, type LabNode, meshLab } from './lab.js'

linksContract('Hyperswarm links', async (t: Assert) => {
  const lab = await meshLab(t)
  const a = await lab.found('a')
  const b = await lab.join('b', await inviteCode(a))
  const foreigner = await lab.found('foreigner')
  return { a: subject(a), b: subject(b), foreigner: subject(foreigner) }
})

function subject(node: LabNode): LinksSubject {
  return { id: node.id, links: node.mesh.links, seen: node.seen, start: () => node.start({ want: false }) }
}
