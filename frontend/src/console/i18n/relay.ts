import { originSentences } from '../../shared/i18n/origin';
import { relaySentences } from '../../shared/i18n/relay';
import { interpreter, type Sentence } from '../../shared/i18n/sentences';
import { visible } from '../../shared/lib/visible';
import { sentence } from '../../shared/lib/words';
import { prefs } from '../../shared/stores/prefs.svelte';

/**
 * What the relay says to its operator: why it refuses a request, and what the
 * explainer finds. A test holds it against the relay's code.
 */
const chinese: readonly Sentence[] = [
  ['there is no account named {0}', '没有名为 {0} 的账户'],
  ['this was changed by someone else at the same time; try again', '其他人同时作了更改，请重试'],
  ['If-None-Match must be *, without If-Match', 'If-None-Match 须为 *，且不带 If-Match'],
  [
    'If-Match must be the ETag of an answer, with its quotes',
    'If-Match 须为某次响应的 ETag，并带引号',
  ],
  ['the store did not answer in time; try again in a moment', '存储未及时响应，请稍后重试'],
  [
    "the relay's store is full; free some space on the disk of its data folder or on its NATS servers, then do this again to be sure",
    '中继的存储没有空间写入；请在其数据文件夹所在的磁盘或其 NATS 服务器上腾出空间，然后再做一次以确认',
  ],
  [
    "NATS is full; free some space on its servers, or raise the limits of the relay's account or streams there",
    'NATS 没有空间写入；请在其服务器上腾出空间，或在那里调高中继的账户或流的限额',
  ],
  [
    'the store did not answer in time, so it is not known whether this was done, or it may still be done; do it again to be sure',
    '存储未及时响应，不知道是否已完成，也可能稍后才完成；请再做一次以确保',
  ],
  [
    'NATS has lost what the relay kept there: this node goes on with what it knows, and cannot change anything until it is restarted after a restore',
    'NATS 已丢失中继保存在其中的数据：此节点凭已知数据继续服务，在恢复备份并重启之前无法更改任何内容',
  ],
  [
    'the audit log is unavailable, and too many changes wait for it, so nothing was changed; try again in a moment',
    '审计日志不可用，等待写入的更改过多，因此未作任何更改；请稍后重试',
  ],
  ['the name or the password is wrong', '用户名或密码错误'],
  ['the code is wrong or was used already', '验证码错误，或已被使用过'],
  [
    'this account also asks for a code from its authenticator app',
    '此账户还需要身份验证器中的验证码',
  ],
  [
    'a name has 1 to 64 lower-case letters, digits, - and _, and begins and ends with a letter or digit',
    '名称须为 1 到 64 个小写字母、数字、- 和 _，并以字母或数字开头和结尾',
  ],
  ['role must be administrator or viewer', '角色须为 administrator 或 viewer'],
  ['there are {0} accounts already', '已有 {0} 个账户'],
  ['there is an account named {0} already', '已有名为 {0} 的账户'],
  ['{0} is the last administrator; make another one first', '{0} 是最后一位管理员，请先设置另一位'],
  ['a second factor is set up already; remove it first', '已开启两步验证，请先关闭'],
  ['there is no such login', '没有这个登录'],
  [
    'a second factor is set up by its owner; totp can be false only',
    '两步验证由本人开启，totp 只能为 false',
  ],
  ['the password is wrong', '密码错误'],
  ["the code is wrong; is the phone's clock right?", '验证码不符，手机的时钟准确吗？'],
  ['this path takes {0}', '此路径接受 {0}'],
  ['there is nothing at this path', '此路径下没有内容'],
  ['overlap_seconds must be 0 to 7776000', 'overlap_seconds 须为 0 到 7776000'],
  [
    'sign in, or send an API token or the admin token as Bearer',
    '请登录，或以 Bearer 发送 API 令牌或管理令牌',
  ],
  ['the token is wrong, was deleted or has expired', '令牌有误、已删除或已过期'],
  ['too many wrong attempts came from here; wait a moment', '此处的错误尝试过多，请稍候'],
  ['this needs an administrator', '此操作需要管理员'],
  ['this API token may not do this', '此 API 令牌无权执行该操作'],
  [
    'this is for people who are signed in with an account of their own',
    '仅供以自己的账户登录的人使用',
  ],
  [
    'this name is not one that the console answers to; add it to [console] allowed_hosts',
    '控制台不响应此名称；请将其加入 [console] allowed_hosts',
  ],
  ['a page of another origin may not use the console', '其他来源的页面不能使用控制台'],
  ['the body is larger than 1 MiB', '请求体超过 1 MiB'],
  ['the relay could not do this; its log says why', '中继未能完成，原因见其日志'],
  ['the body must be application/json', '请求体须为 application/json'],
  ['the body does not parse as JSON', '请求体不是有效的 JSON'],
  ['something follows the JSON document', 'JSON 文档之后还有内容'],
  ['the body must be a JSON object', '请求体须为 JSON 对象'],
  [
    'a time must be a string such as 2026-11-01T00:00:00Z',
    '时间须为文本，例如 2026-11-01T00:00:00Z',
  ],
  ['there is no field {0}', '没有字段 {0}'],
  ['format must be ndjson or csv', 'format 须为 ndjson 或 csv'],
  ['too many live readers of events are open; close one', '实时读取事件的连接过多，请关闭一个'],
  ['{0} is not known', '{0} 未知'],
  ['{0} is given twice', '{0} 重复出现'],
  ['the query string is malformed', '查询字符串格式有误'],
  ['{0} must be 1 to {1}', '{0} 须为 1 到 {1}'],
  ['{0} must be a status such as 404 or 4xx', '{0} 须为状态码，例如 404 或 4xx'],
  ['{0} must be a time such as 2026-11-01T00:00:00Z', '{0} 须为时间，例如 2026-11-01T00:00:00Z'],
  ['{0} must be the number of an entry', '{0} 须为记录的编号'],
  ['scope is missing', '缺少 scope'],
  ['the password must have at least {0} characters', '密码至少 {0} 个字符'],
  ['the password must have at most {0} bytes', '密码最多 {0} 字节'],
  ['the password is too easy to guess', '密码过于容易猜到'],
  ['span must be hour or day', 'span 须为 hour 或 day'],
  ['an administrator was set up already; sign in', '已设置管理员，请登录'],
  [
    'the set-up code is wrong; the relay printed it when it started, and keeps it in the file setup_code of its data folder',
    '设置码有误；中继启动时打印过它，也保存在数据目录的 setup_code 文件中',
  ],
  ['send a name and password, or the admin token', '请发送用户名和密码，或管理令牌'],
  ['there is no such API token', '没有这个 API 令牌'],
  ['name must have 1 to 64 bytes', '名称须为 1 到 64 字节'],
  ['scope must be read or write', 'scope 须为 read 或 write'],
  ['expires_at must be in the next {0} years', 'expires_at 须在今后 {0} 年之内'],
  ['there are {0} API tokens already', '已有 {0} 个 API 令牌'],
  ['there is an API token named {0} already', '已有名为 {0} 的 API 令牌'],
  ['the cursor is not one that an answer gave', '游标并非来自之前的响应'],
  [
    "a sink's name has 1 to 32 lower-case letters, digits, hyphens or underscores, and begins and ends with a letter or digit",
    '转发的名称须为 1 到 32 个小写字母、数字、连字符或下划线，并以字母或数字开头和结尾',
  ],
  ['there are {0} sinks already, the most there may be', '已有 {0} 个转发，已达上限'],
  ['there is no sink named {0}', '没有名为 {0} 的转发'],
  [
    'there is a client named {0} already; rotate its token, or revoke it first',
    '已有名为 {0} 的客户端；请轮换其令牌，或先将其吊销',
  ],
  ['the client {0} is revoked; add it again', '客户端 {0} 已被吊销，请重新添加'],
  ['there is no client named {0}', '没有名为 {0} 的客户端'],
  [
    "a client's name has 1 to 63 lower-case letters, digits, dots, hyphens or underscores, and begins and ends with a letter or digit",
    '客户端名称须为 1 到 63 个小写字母、数字、点、连字符或下划线，并以字母或数字开头和结尾',
  ],
  [
    '{0} is not a private tunnel, which is CLIENT/NAME',
    '{0} 不是私有隧道，私有隧道写作“客户端/名称”',
  ],
  [
    '{0} is neither a domain nor tcp.PORT, udp.PORT or CLIENT/NAME',
    '{0} 既不是域名，也不是 tcp.端口、udp.端口 或“客户端/名称”',
  ],
  ['no policy is set for {0}', '{0} 没有设置策略'],
  ['no policy is set: every visitor is let in', '没有设置策略：允许所有访客'],
  // What is wrong with a sink or with what a client may have.
  ['q has at most {0} bytes', '搜索内容最多 {0} 字节'],
  ['{0}: must be access, audit or client, each once', '{0}：须为 access、audit 或 client，各一次'],
  [
    '{0}: must be a URL such as https://siem.example.com/adit',
    '{0}：须为 URL，例如 https://siem.example.com/adit',
  ],
  [
    '{0}: must not have a user and password; use secret',
    '{0}：不能包含用户名和密码，请使用 secret',
  ],
  ["{0}: address, ca and facility are syslog's", '{0}：address、ca 和 facility 仅用于 syslog'],
  ['{0}: has more than 512 bytes', '{0}：超过 512 字节'],
  [
    '{0}: must be udp://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT',
    '{0}：须为 udp://HOST:PORT、tcp://HOST:PORT 或 tls://HOST:PORT',
  ],
  ["{0}: url and secret are a webhook's", '{0}：url 和 secret 仅用于 webhook'],
  ['{0}: must be 0 to 23', '{0}：须为 0 到 23'],
  ['{0}: is for tls:// only', '{0}：仅用于 tls://'],
  ['{0}: has no certificate in PEM', '{0}：其中没有 PEM 格式的证书'],
  ['{0}: must be webhook or syslog', '{0}：须为 webhook 或 syslog'],
  [
    '{0}: is not a public address; set [sinks] allow_private = true in relay.toml to reach it',
    '{0}：不是公网地址；若要使用，请在 relay.toml 中设置 [sinks] allow_private = true',
  ],
  ['{0}: has more than {1} entries', '{0}：超过 {1} 项'],
  [
    '{0}: {1} is not a name, a label, or a pattern such as *.example.com or shop-*',
    '{0}：{1} 不是名称、标签或模式，例如 *.example.com 或 shop-*',
  ],
  [
    '{0}: {1} is not a port, or a range such as 20000-20010',
    '{0}：{1} 不是端口或范围，例如 20000-20010',
  ],
  ['{0}: must be warn, throttle or stop', '{0}：须为 warn、throttle 或 stop'],
  // What the explainer finds.
  ['it is {0}: {1*}', '现在是 {0}：{1*}'],
  ['open', '开放'],
  ['closed', '关闭'],
  ['{0} of {1} are open', '已打开 {0} 个，上限 {1} 个'],
  ['{0} a second, {1} at once; {2} may come now', '每秒 {0} 个，同时 {1} 个；现在可来 {2} 个'],
  ['at most {0} bytes', '最多 {0} 字节'],
  ['this type of tunnel cannot ask for a password', '此类型的隧道无法询问密码'],
  ['this type of tunnel has no client certificates', '此类型的隧道没有客户端证书'],
  ['no certificate was presented', '没有出示证书'],
  ['there is no certificate', '没有证书'],
  ['more than {0} certificates were presented', '出示的证书超过 {0} 个'],
  ['the certificates have more than {0} KiB', '证书超过 {0} KiB'],
  ['{0*} is valid from {1} to {2}', '{0*} 的有效期为 {1} 至 {2}'],
  [
    '{0*} is not for clients: its extended key usage, or that of an authority, is another',
    '{0*} 不用于客户端：其扩展密钥用法或其颁发机构的扩展密钥用法另有所指',
  ],
  ['{0*} is from none of the authorities', '{0*} 不是由这些颁发机构签发的'],
  ['{0*} presents a certificate that is good until {1}', '{0*} 出示了有效期至 {1} 的证书'],
  ['the path does not belong to a webhook', '此路径不属于 webhook'],
  ['a request to {0} must be signed by {1}', '发往 {0} 的请求须由 {1} 签名'],
  ['signed by {0}, for {1}', '由 {0} 签名，用于 {1}'],
  ['no secret matches its signature', '没有密钥与其签名相符'],
  ['origins differ in what they take the path for', '各种服务对此路径的理解不一'],
  ['this type of tunnel cannot verify webhooks', '此类型的隧道无法验证 webhook'],
  ['one of {0} users is asked for', '需要以 {0} 个用户之一登录'],
  ['too many wrong passwords came from the address', '此地址的错误密码过多'],
  ['the password is checked', '检查密码'],
  ['this type of tunnel cannot have visitors sign in', '此类型的隧道无法让访客登录'],
  ['visitors sign in with {0}', '访客通过 {0} 登录'],
  ['{0*} has signed in with {1}', '{0*} 已通过 {1} 登录'],
  ['{0*} is not among those let in', '{0*} 不在允许之列'],
  ['a member of {0}', '{0} 的成员'],
  // What is wrong with an identity provider.
  ['read the configuration of {0}: {1*}', '读取 {0} 的配置：{1*}'],
  [
    'user must be an address or a name, of at most {0} bytes',
    'user 必须是地址或名称，最多 {0} 字节',
  ],
  ['nobody has signed in: the relay has no identity provider', '没有人登录过：中继没有身份提供方'],
  ['swap the code: {0*}', '换取授权码：{0*}'],
  ['read /{0}: it names nobody', '读取 /{0}：未说明是谁'],
  ['read /{0}: it answers {1*}', '读取 /{0}：返回 {1*}'],
  ['read /{0}: the answer has more than {1} bytes', '读取 /{0}：返回内容超过 {1} 字节'],
  ['read /{0}: {1*}', '读取 /{0}：{1*}'],
  ['it names no addresses for authorization and tokens', '其中没有授权和令牌的地址'],
  ['{0} is not among the {1} listed', '{0} 不在所列的 {1} 条之中'],
  ['{0} is in {1}', '{0} 在 {1} 之中'],
  ['the relay has no geo database', '中继没有 GeoIP 数据库'],
  ['the database does not know {0}', '数据库中没有 {0}'],
  [
    'the client {0} has moved {1} of {2} bytes in {3}',
    '客户端 {0} 在 {3} 已用 {1} 字节，共 {2} 字节',
  ],
];
// What is wrong with the GeoIP database, after the key.
const geo: readonly Sentence[] = [
  ['geo.database: there is no file {0}; is the name right?', '文件 {0} 不存在，名称是否正确？'],
  [
    'geo.database: the user that the relay runs as may not read {0}; give it the right to',
    '运行中继的用户无权读取 {0}，请授予权限',
  ],
  ['geo.database: {0} is a folder; name the file in it', '{0} 是目录，请指定其中的文件'],
  ['geo.database: {0} cannot be read: {1}', '无法读取 {0}：{1}'],
  ['geo.database: {0} is larger than 1 GiB', '{0} 超过 1 GiB'],
  ['geo.database: {0} is not a database in MMDB format: {1}', '{0} 不是 MMDB 格式的数据库：{1}'],
];
// After those of policies, whose fields these would take for their own.
const general: readonly Sentence[] = [
  ['{0} is not an address or CIDR', '{0} 不是地址或 CIDR'],
  ['{0} is not an address', '{0} 不是地址'],
  ['{0} is not a time such as 2026-11-01T00:00:00Z', '{0} 不是时间，例如 2026-11-01T00:00:00Z'],
];

/** Returns what the relay said in a language; what is not known stays as it is. */
export const translated = interpreter([
  ...geo,
  ...chinese,
  ...originSentences,
  ...relaySentences,
  ...general,
]);

/** Returns what the relay said in the reader's language, as a sentence. */
export const said = (text: string): string => sentence(visible(translated(text, prefs.lang)));
