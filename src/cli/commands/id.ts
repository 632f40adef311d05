import { shortId } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { printFacts } from '../terminal/render.js'
import { timeText } from '../words.js'

/** `id`: keys, mesh and certificate. */
export const id: Action = async ({ output, api }) => {
  const info = await api().call('node.id', {})
  if (output.json) {
    output.object('id@1', info)
    return EXIT.ok
  }
  const { node, mesh, certificate } = info
  output.print(
    `node ${output.paint('bold', shown(node.name))}   ${node.tier}   mesh ${output.paint('bold', shown(mesh.name))}`
  )
  const rights = [certificate.mayInvite ? 'invite' : null, certificate.mayWrite ? 'write the log' : null].filter(
    (one) => one !== null
  )
  printFacts(output, [
    ['node id', node.id],
    ['mesh id', mesh.id],
    ['owner', `${mesh.owner.name} (${shortId(mesh.owner.id)})`],
    ['may', rights.length === 0 ? 'neither invite nor write the log' : rights.join(', ')],
    certificate.sandboxId === null ? null : ['sandbox', certificate.sandboxId],
    [
      'issued',
      `${timeText(certificate.issuedAt)} by ${certificate.issuer.name} (${shortId(certificate.issuer.id)}), serial ${certificate.serial}`
    ],
    ['expires', certificate.expiresAt === null ? 'never' : timeText(certificate.expiresAt)]
  ])
  return EXIT.ok
}
