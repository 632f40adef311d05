/** Tools of servers for messages, media, sales and the home, in the form of the servers for work. */
export const LIFE_SERVERS: Readonly<Record<string, string>> = {
  browser: `
navigate | Opens a URL in the browser. | url*
navigate_back | Goes back to the previous page. |
snapshot | Gives the accessibility tree of the current page: better than a picture for acting on it. |
take_screenshot | Takes a screenshot of the current page or of one element and saves it. | filename; fullPage:boolean; element
click | Clicks on an element of the page. | element*; ref*; button:left|right|middle; doubleClick:boolean
type_text | Types text into an editable element. | ref*; text*; submit:boolean; slowly:boolean
fill_form | Fills in several fields of a form. | fields*:object[]
select_option | Selects an option in a dropdown. | ref*; values*:string[]
hover | Moves the mouse over an element. | ref*
drag | Drags one element onto another. | startRef*; endRef*
press_key | Presses a key on the keyboard. | key*
upload_file | Uploads files in a file chooser of the page. | paths*:string[]
handle_dialog | Accepts or dismisses a dialog of the page. | accept*:boolean; promptText
evaluate_script | Runs JavaScript in the page. | function*; ref
console_messages | Lists the messages of the page's console. | onlyErrors:boolean
network_requests | Lists the network requests of the page since it was loaded. |
wait_for | Waits for a text to appear or disappear, or for a time. | text; textGone; time:number
list_tabs | Lists, opens, closes or selects browser tabs. | action*:list|new|close|select; index:integer
resize_window | Changes the size of the browser window. | width*:number; height*:number
save_pdf | Saves the current page as a PDF. | filename
close_browser | Closes the browser. |
`,
  calendar: `
list_calendars | Lists the calendars of the account. |
list_events | Lists events between two times. | calendar; timeMin*; timeMax*; limit:integer
search_events | Searches events by text. | query*; timeMin; timeMax
get_event | Gets the details of an event. | calendar; event*
create_event | Creates an event and invites its attendees. | calendar; summary*; start*; end*; attendees:string[]; location; description; recurrence:string[]
update_event | Changes an event. | calendar; event*; summary; start; end; location
delete_event | Deletes an event and tells its attendees that it is cancelled. | calendar; event*; notify:boolean
respond_to_event | Accepts or declines an invitation. | event*; response*:accepted|declined|tentative
find_free_slots | Finds times at which all given people are free. | attendees*:string[]; from*; to*; durationMinutes*:integer
free_busy | Tells when calendars are busy. | calendars*:string[]; from*; to*
add_reminder | Adds a reminder to an event. | event*; minutesBefore*:integer
create_calendar | Creates a calendar. | name*; timeZone
`,
  mail: `
search_messages | Searches the mailbox with a query. | query*; limit:integer
read_message | Reads an email with its headers and body. | id*
send_email | Sends an email, with files as attachments. | to*:string[]; cc:string[]; bcc:string[]; subject*; body*; attachments:string[]
reply_to_email | Replies to an email. | id*; body*; replyAll:boolean
forward_email | Forwards an email to other people. | id*; to*:string[]; note
create_draft | Saves an email as a draft without sending it. | to:string[]; subject*; body*
send_draft | Sends a draft. | id*
delete_message | Moves an email to the trash. | id*
archive_message | Removes an email from the inbox and keeps it. | id*
mark_read | Marks emails as read or unread. | ids*:string[]; read*:boolean
list_labels | Lists the labels of the mailbox. |
create_label | Creates a label. | name*; color
label_message | Adds labels to an email or removes them. | id*; add:string[]; remove:string[]
download_attachment | Downloads an attachment of an email. | id*; attachment*; folder
list_threads | Lists conversations of the mailbox. | label; limit:integer
create_filter | Creates a rule for incoming mail. | from; subject; addLabel; archive:boolean
set_vacation_reply | Turns an automatic answer on or off while you are away. | enabled*:boolean; subject; body; until
`,
  chat: `
list_channels | Lists the channels of the workspace. | limit:integer; cursor
post_message | Posts a message to a channel. | channel*; text*
reply_to_thread | Posts a reply into the thread of a message. | channel*; thread*; text*
add_reaction | Adds an emoji reaction to a message. | channel*; timestamp*; reaction*
channel_history | Gets the latest messages of a channel. | channel*; limit:integer
thread_replies | Gets all replies of a thread. | channel*; thread*
search_chat | Searches messages and files of the workspace. | query*; from; in
list_users | Lists the users of the workspace. | cursor
user_profile | Gets the profile of a user. | user*
direct_message | Sends a private message to a user. | user*; text*
create_channel | Creates a channel. | name*; private:boolean
invite_to_channel | Invites users to a channel. | channel*; users*:string[]
set_topic | Sets the topic of a channel. | channel*; topic*
upload_to_channel | Shares a file in a channel. | channel*; path*; comment
schedule_message | Posts a message at a later time. | channel*; text*; postAt*
set_presence | Sets your status and whether you are away. | status; away:boolean
`,
  storage: `
list_buckets | Lists the buckets of the account. |
create_bucket | Creates a bucket. | name*; region
list_objects | Lists the objects of a bucket below a prefix. | bucket*; prefix; limit:integer
get_object | Downloads an object of a bucket. | bucket*; key*; path
put_object | Uploads a file as an object of a bucket. | bucket*; key*; path*; contentType
copy_object | Copies an object within or between buckets. | from*; to*
delete_object | Deletes an object. | bucket*; key*
presign_url | Makes a link to an object that works for a limited time. | bucket*; key*; expiresSeconds:integer
object_metadata | Gives size, type and tags of an object. | bucket*; key*
set_lifecycle | Sets rules by which old objects of a bucket expire. | bucket*; rules*:object[]
bucket_usage | Gives the number of objects and their total size in a bucket. | bucket*
set_bucket_policy | Sets who may read and write a bucket. | bucket*; policy*:object
`,
  maps: `
geocode | Turns an address into coordinates. | address*
reverse_geocode | Turns coordinates into an address. | latitude*:number; longitude*:number
search_places | Finds places such as shops and restaurants by text near a location. | query*; location:object; radius:number
place_details | Gives opening hours, phone number and ratings of a place. | place*
directions | Gives the route between two places with distance and duration. | origin*; destination*; mode:driving|walking|bicycling|transit
distance_matrix | Gives travel distances and times between many origins and destinations. | origins*:string[]; destinations*:string[]; mode
elevation | Gives the height above sea level of locations. | locations*:object[]
time_zone_at | Gives the time zone of a location. | latitude*:number; longitude*:number
static_map | Draws a map of an area as an image. | center*; zoom*:integer; markers:string[]
traffic | Gives the current traffic on a road or in an area. | area*
`,
  weather: `
current_conditions | Gives current temperature, wind and humidity at a place. | location*; units:metric|imperial
daily_forecast | Gives the weather forecast for the next days at a place. | location*; days:integer; units:metric|imperial
hourly_forecast | Gives temperature and chance of rain for the next hours. | location*; hours:integer
weather_alerts | Lists official warnings of storms, floods and heat. | region*
air_quality | Gives the air quality index and pollen. | location*
historical_weather | Gives the weather of a day in the past. | location*; date*
sunrise_sunset | Gives the times of sunrise and sunset. | location*; date
marine_forecast | Gives waves, tides and wind at sea. | latitude*:number; longitude*:number
`,
  home: `
list_devices | Lists the smart devices of the house and their rooms. | room; type
device_state | Gives the state of a device. | device*
turn_on | Turns a device or all lights of a room on. | device; room
turn_off | Turns a device or all lights of a room off. | device; room
set_brightness | Dims a light. | device*; percent*:integer
set_color | Changes the colour of a light. | device*; color*
set_temperature | Sets the target temperature of a thermostat. | device*; celsius*:number
set_hvac_mode | Switches heating or cooling. | device*; mode*:heat|cool|auto|off
lock_door | Locks a door. | door*
unlock_door | Unlocks a door with a code. | door*; code*
open_cover | Opens blinds, a shutter or the garage door. | device*; position:integer
close_cover | Closes blinds, a shutter or the garage door. | device*
run_scene | Activates a scene such as movie night. | scene*
list_automations | Lists the automations of the house. |
toggle_automation | Enables or disables an automation. | automation*; enabled*:boolean
camera_snapshot | Takes a still picture from a camera of the house. | camera*
start_vacuum | Sends the robot vacuum cleaner out. | rooms:string[]
energy_usage | Gives the electricity used by devices over a period. | from*; to*; device
sensor_history | Gives past values of a sensor. | sensor*; from*; to*
set_alarm | Arms or disarms the alarm system. | mode*:home|away|off; code
`,
  music: `
search_music | Searches songs, albums, artists and playlists. | query*; type; limit:integer
play | Plays a song, album or playlist on a speaker. | uri; device
pause_playback | Pauses the music. | device
next_track | Skips to the next song. | device
previous_track | Goes back to the previous song. | device
set_volume | Changes the volume of a speaker. | percent*:integer; device
queue_track | Adds a song to the queue. | uri*
now_playing | Tells which song is playing. |
list_playlists | Lists your playlists. | limit:integer
create_playlist | Creates a playlist. | name*; description; public:boolean
add_to_playlist | Adds songs to a playlist. | playlist*; uris*:string[]
recommendations | Suggests songs like the given ones. | seeds*:string[]; limit:integer
list_speakers | Lists the speakers that can play. |
`,
  images: `
resize_image | Changes the width and height of an image. | path*; width:integer; height:integer; keepAspect:boolean
crop_image | Cuts a rectangle out of an image. | path*; x*:integer; y*:integer; width*:integer; height*:integer
convert_image | Converts an image to another format. | path*; format*:png|jpeg|webp|avif; quality:integer
remove_background | Makes the background of an image transparent. | path*
describe_image | Says what an image shows, as text. | path*; question
generate_image | Makes an image from a text with a diffusion model. | prompt*; negativePrompt; width:integer; height:integer; steps:integer; seed:integer
upscale_image | Enlarges an image with more detail. | path*; factor*:integer
read_text_in_image | Reads the text in an image (OCR). | path*; language
detect_faces | Finds faces in an image. | path*
image_metadata | Gives size, camera and location (EXIF) of an image. | path*
watermark_image | Puts a logo or text over an image. | path*; text; logo
`,
  audio: `
transcribe | Turns speech in a recording into text. | path*; language; timestamps:boolean; speakers:boolean
translate_speech | Turns speech of any language in a recording into English text. | path*
synthesize_speech | Reads a text aloud into an audio file. | text*; voice; speed:number
convert_audio | Converts audio to another format. | path*; format*:mp3|wav|flac|ogg
trim_audio | Cuts a part out of an audio file. | path*; start*:number; end*:number
separate_voices | Splits a recording by its speakers. | path*
`,
  crm: `
search_contacts | Finds contacts by name, company or email. | query*; limit:integer
get_contact | Gets a contact with its history. | id*
create_contact | Creates a contact. | firstName; lastName*; email; company; phone
update_contact | Changes a contact. | id*; fields*:object
merge_contacts | Joins two contacts that are the same person. | keep*; duplicate*
delete_contact | Deletes a contact. | id*
list_companies | Lists companies. | query; limit:integer
create_company | Creates a company. | name*; domain; industry
list_deals | Lists deals of the sales pipeline. | stage; owner
create_deal | Creates a deal. | title*; amount:number; company; stage
move_deal | Moves a deal to another stage. | id*; stage*
log_call | Records a phone call with a contact. | contact*; notes*; durationMinutes:integer
add_note | Adds a note to a contact, company or deal. | target*; text*
create_task | Creates a follow-up task for a salesperson. | title*; due*; assignee; contact
sales_report | Gives sales by month, owner or stage. | from*; to*; groupBy:month|owner|stage
`,
  billing: `
create_customer | Creates a customer for invoices and payments. | email*; name; taxId
list_customers | Lists customers. | email; limit:integer
create_invoice | Creates an invoice for a customer. | customer*; items*:object[]; dueDate; currency
send_invoice | Sends an invoice to its customer. | invoice*
void_invoice | Voids an invoice. | invoice*
list_invoices | Lists invoices by status and date. | customer; status:draft|open|paid|void; from; to
create_payment_link | Makes a link by which a customer can pay. | price*; quantity:integer
list_payments | Lists payments. | customer; limit:integer
refund_payment | Pays a payment back, whole or in part. | payment*; amount:integer; reason
create_subscription | Starts a subscription of a customer to a plan. | customer*; plan*; trialDays:integer
cancel_subscription | Cancels a subscription. | subscription*; atPeriodEnd:boolean
list_disputes | Lists payments that customers dispute. | status
account_balance | Gives the balance of the account. |
`,
  metrics: `
query_metrics | Runs a query over metrics at one time. | expression*; time
query_range | Runs a query over metrics for a period, as a time series. | expression*; start*; end*; step
list_metrics | Lists the names of metrics. | match
host_overview | Gives processor, memory, disk and network use of a machine. | host*
disk_usage | Gives used and free space of the disks of a machine. | host*
search_logs | Searches log lines of all services. | query*; from; to; service; level
list_alerts | Lists alerts that fire now. | severity; service
silence_alert | Silences an alert for a while. | alert*; durationMinutes*:integer; comment*
acknowledge_incident | Confirms that you take care of an incident. | incident*
list_incidents | Lists incidents. | status; service
who_is_on_call | Tells who is on call for a service now. | service*
list_dashboards | Lists dashboards. | query
render_panel | Draws a panel of a dashboard as an image. | dashboard*; panel*:integer; from; to
trace_request | Gets the spans of a distributed trace. | trace*
service_map | Shows which services call each other. | from; to
uptime_report | Gives the availability of a service over a period. | service*; from*; to*
`,
  web: `
web_search | Searches the web and returns titles, links and snippets. | query*; count:integer; freshness
news_search | Searches news articles. | query*; from; language
image_search | Searches for pictures on the web. | query*; count:integer
fetch_url | Fetches a URL and extracts its content as markdown. | url*; maxLength:integer; startIndex:integer; raw:boolean
summarize_url | Fetches an article and sums it up. | url*; sentences:integer
link_preview | Gives title, picture and description of a link. | url*
domain_info | Gives owner and dates of a domain. | domain*
translate_text | Translates text into another language. | text*; to*; from
`,
  memory: `
create_entities | Creates entities in the knowledge graph. | entities*:object[]
create_relations | Creates relations between entities. | relations*:object[]
add_observations | Adds observations (facts to remember) to entities of the knowledge graph. | observations*:object[]
delete_entities | Deletes entities and their relations. | entityNames*:string[]
delete_observations | Deletes observations of entities. | deletions*:object[]
delete_relations | Deletes relations. | relations*:object[]
read_graph | Reads the whole knowledge graph. |
search_memory | Searches entities of the knowledge graph by text. | query*
open_entities | Opens entities by their names. | names*:string[]
`,
  time: `
get_current_time | Gets the current time in a time zone. | timezone*
convert_time | Converts a time between time zones. | source_timezone*; time*; target_timezone*
days_between | Counts the days between two dates. | from*; to*; businessDays:boolean
`,
  printer: `
printer_status | Gives temperatures and state of the 3D printer. |
start_print | Starts to print a file on the 3D printer. | file*
pause_print | Pauses the print. |
cancel_print | Cancels the print. |
print_progress | Gives the progress and remaining time of the print. |
upload_model | Uploads a model file to the printer. | path*
slice_model | Turns a 3D model into instructions for the printer. | path*; layerHeight:number; infill:integer; supports:boolean
preheat | Heats nozzle and bed. | nozzle*:integer; bed*:integer
`,
  helpdesk: `
list_tickets | Lists support tickets by status. | status; assignee; limit:integer
get_ticket | Gets a support ticket with its conversation. | id*
create_ticket | Creates a support ticket for a customer. | subject*; body*; requester*; priority
answer_ticket | Writes a public answer to the customer of a ticket. | id*; body*
add_internal_note | Adds a note to a ticket that only the team sees. | id*; body*
close_ticket | Solves and closes a ticket, and notifies its customer. | id*; message
escalate_ticket | Hands a ticket over to the second level. | id*; reason*
merge_tickets | Merges tickets about the same problem. | target*; sources*:string[]
search_help_articles | Searches articles of the help center. | query*
satisfaction_report | Gives the satisfaction of customers over a period. | from*; to*
sla_breaches | Lists tickets that missed their answer time. | from; to
`
}
