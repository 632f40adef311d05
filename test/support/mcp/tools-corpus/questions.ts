/** A question as a person asks it, and the tools that answer it. */
export type Question = readonly [question: string, ...tools: readonly string[]]

/** Questions by which the ranking was tuned. */
export const QUESTIONS: readonly Question[] = [
  ['which commits changed this file last week', 'git.log'],
  ['save a picture of the whole web page', 'browser.take_screenshot'],
  ['what will the weather be like tomorrow', 'weather.daily_forecast'],
  ['delete a container that is not running any more', 'containers.remove_container', 'containers.prune'],
  ['send an email with a file attached', 'mail.send_email'],
  ['find a time when three colleagues are free for a meeting', 'calendar.find_free_slots'],
  ['switch off the lights in the living room', 'home.turn_off'],
  ['how long does it take to drive from home to the airport', 'maps.directions', 'maps.distance_matrix'],
  ['show me the logs of a pod that crashed', 'cluster.pod_logs'],
  ['give a customer their money back', 'billing.refund_payment'],
  ['turn the recording of a meeting into text', 'audio.transcribe'],
  ['rename a file', 'files.move_file'],
  ['who is working on this bug', 'issues.get_issue', 'issues.search_issues'],
  ['run a select statement against the database', 'postgres.query'],
  ['restart all pods of the web deployment', 'cluster.rollout_restart'],
  ['make a photo smaller', 'images.resize_image'],
  ['add a line to the budget spreadsheet', 'sheets.append_rows'],
  ['why did the build fail', 'ci.job_log'],
  ['remember that the user prefers metric units', 'memory.add_observations', 'memory.create_entities'],
  ['what time is it in Tokyo when it is noon here', 'time.convert_time', 'time.get_current_time']
]

/** Questions that nobody looked at before the ranking was ready: they show whether it fits more than the others. */
export const HELD_BACK: readonly Question[] = [
  ['undo my changes to a file in the working tree', 'git.restore'],
  ['fill in the registration form on a website', 'browser.fill_form', 'browser.type_text'],
  ['answer a message in a channel thread', 'chat.reply_to_thread'],
  ['which files in this folder are the biggest', 'files.list_directory_with_sizes'],
  ['is it going to rain this afternoon', 'weather.hourly_forecast'],
  ['open a pull request for my branch', 'forge.create_pull_request'],
  ['two customer records are the same person, combine them', 'crm.merge_contacts'],
  ['stop the music', 'music.pause_playback'],
  ['run five replicas of a service', 'cluster.scale_deployment'],
  ['upload a backup to a bucket', 'storage.put_object'],
  ['put a French voice message into English', 'audio.translate_speech'],
  ['set the heating to 20 degrees', 'home.set_temperature'],
  ['which database queries are slow', 'postgres.slow_queries'],
  ['close a support ticket and inform the customer', 'helpdesk.close_ticket'],
  ['what can be seen in this picture', 'images.describe_image'],
  ['cancel my appointment on Friday', 'calendar.delete_event', 'calendar.respond_to_event'],
  ['find an Italian restaurant near the office', 'maps.search_places'],
  ['go back to the previous release in production', 'ci.rollback_release'],
  ['how much disk space is left on the server', 'metrics.disk_usage'],
  ['print this model', 'printer.start_print']
]
