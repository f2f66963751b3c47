import type { Sentence } from './sentences';

/**
 * What the relay says to agents: why it refuses a session, a tunnel or a policy,
 * and why it ends one. A test holds it against the relay's code.
 */
export const relaySentences: readonly Sentence[] = [
  [
    'the relay does not know this auth token, or it was revoked',
    '此处没有这个认证令牌，或它已被吊销',
  ],
  [
    'this node of the relay is cut off from its store, and cannot tell whether the auth token is good',
    '中继的这个节点与其存储失去了联系，无法判断认证令牌是否有效',
  ],
  ['{0*} now belongs to another client; choose another', '{0*} 现在已归他人所有，请换一个'],
  ['the auth token belongs to another client than the client id says', '认证令牌属于另一个客户端'],
  ['the auth token was revoked', '认证令牌已被吊销'],
  ['the client was revoked', '此客户端已被吊销'],
  [
    'the auth token was replaced by a newer one, and no longer works',
    '认证令牌已被新令牌取代，不再有效',
  ],
  ["the client's time ended on {0}", '此客户端的使用期已于 {0} 结束'],
  [
    'the relay speaks a newer version of the protocol; update adit',
    '中继使用较新版本的协议，请更新 adit',
  ],
  [
    'the relay speaks an older version of the protocol; ask its operator to update it',
    '中继使用较旧版本的协议，请联系其运营者更新中继',
  ],
  [
    'the relay revoked the token: {0*}; ask its operator for a new one',
    '中继吊销了令牌：{0*}；请向其运营者索取新的令牌',
  ],
  [
    'the relay refuses the token for now: {0*}; ask its operator',
    '中继暂不接受令牌：{0*}；请联系其运营者',
  ],
  ['no reason given', '未说明原因'],
  ['the relay took it away', '中继已将其收回'],
  [
    'the relay may not open {0*}: its system keeps that port; ask its operator, or choose another',
    '中继无权打开 {0*}：该端口由其系统保留；请联系其运营者，或换一个',
  ],
  [
    'the relay may not open any of its {0} ports, {1} to {2}: its system keeps them; ask its operator',
    '中继无权打开其任何 {0} 端口（{1} 到 {2}）：这些端口由其系统保留；请联系其运营者',
  ],
  ['the relay cannot open {0*} now', '中继目前无法打开 {0*}'],
  ['the relay is shutting down', '中继正在关闭'],
  ['another node of the relay is less busy', '中继的另一节点较空闲'],
  [
    'something went wrong at the relay; ask its operator, who can find the cause in its log',
    '中继出现问题，原因记录在其日志中；请联系其运营者',
  ],
  [
    "the relay's store did not answer in time; try again in a moment",
    '中继的存储未及时响应；请稍后重试',
  ],
  [
    "the relay's store is full; ask its operator to free some space",
    '中继的存储已没有空间；请联系其运营者腾出空间',
  ],
  [
    'this node of the relay has lost its store, and cannot change anything until its operator restores a backup',
    '中继的此节点已丢失其存储，在运营者恢复备份之前无法更改任何内容',
  ],
  [
    'the relay has too many agents connected; ask its operator to allow more',
    '中继连接的代理过多，请联系其运营者扩容',
  ],
  [
    'too many sessions are waiting to identify themselves, and this one did not do so in time; try again',
    '未表明身份的会话过多，且此会话未及时表明身份，请重试',
  ],
  [
    'too many sessions from this address are waiting to identify themselves; try again later',
    '来自此地址且尚未表明身份的会话过多，请稍后再试',
  ],
  ['the relay has too many sessions', '中继的会话过多'],
  ['the relay is too busy', '中继过于繁忙'],
  ['no hello came in time', '未及时收到问候消息'],
  ['a measurement of speed is over', '速度测量已结束'],
  ['the client has used up its traffic for this month', '该客户端本月的流量已用完'],
  ['the bytes to measure the speed by did not come', '用于测量速度的字节未到达'],
  ['the hello was refused', '问候消息被拒绝'],
  ['events are not read', '事件未被读取'],
  [
    'replaced by a newer session of the same agent',
    '已被同一代理的较新会话取代；若复制过状态目录，请为另一台机器单独配置',
  ],
  ['the session has ended', '会话已结束'],
  ['the first request of a session is its hello', '会话的第一个请求须为问候消息'],
  ['a session has one hello', '一个会话只有一条问候消息'],
  ['the agent has a session with this node already', '此代理与该节点已有会话'],
  [
    "the client has too many agents connected; end one, or ask the relay's operator for more",
    '此客户端连接的代理过多，请结束其中一个，或请中继的运营者放宽限制',
  ],
  ["the request's body does not parse", '请求体无法解析'],
  ["something follows the request's body", '请求体之后还有内容'],
  ['{0} is too long or has control characters; change it', '{0} 过长或含有控制字符，请修改'],
  ['instance is missing', '缺少实例标识'],
  [
    "the claim's key has 1 to 64 letters, digits, dots, hyphens or underscores",
    '隧道标识须为 1 到 64 个字母、数字、点、连字符或下划线',
  ],
  ['the relay knows the types {0}', '中继支持的类型为 {0}'],
  ['the relay knows the modes {0}', '中继支持的模式为 {0}'],
  [
    'a tunnel of type {0} has no public port of its own; give it none',
    '{0} 类型的隧道没有自己的公网端口，请不要为它填写端口',
  ],
  ['a tunnel of type {0} has no paths; give it none', '{0} 类型的隧道没有路径，请不要填写路径'],
  [
    'paths: host_header of {0}: {1} is not a host; write a name or an address, such as app.local or 192.0.2.1:8080',
    '路径 {0} 的 Host 请求头：{1} 不是主机，请填写名称或地址，例如 app.local 或 192.0.2.1:8080',
  ],
  ['paths: {0*}', '路径：{0*}'],
  [
    'a tunnel of type {0} has no headers to change; give it no changes of headers',
    '{0} 类型的隧道没有可更改的标头，请不要为它填写标头更改',
  ],
  ['the port must be 1 to 65535', '端口须为 1 到 65535'],
  ['the name has at most 128 bytes', '名称最多 128 字节'],
  [
    '{0} is not a host; write a name or an address, such as app.local or 192.0.2.1:8080',
    '{0} 不是主机，请填写名称或地址，例如 app.local 或 192.0.2.1:8080',
  ],
  ["no port is free; ask the relay's operator for more", '没有空闲的端口，请联系中继的运营者增加'],
  ['no free name was found', '没有找到空闲的名称'],
  [
    'ports of type {0} are {1} to {2} here; choose one of them, or leave the port out and the relay gives one',
    '此处 {0} 类型的端口为 {1} 到 {2}，请选择其中之一，或不填端口，由中继分配',
  ],
  [
    'the relay gives no ports to tunnels of type {0}; ask its operator for some',
    '中继不为 {0} 类型的隧道提供端口，请联系其运营者开放',
  ],
  [
    "an agent may have at most {0} tunnels here; stop one first, or ask the relay's operator for more",
    '每个代理在此最多有 {0} 个隧道，请先停止一个，或请中继的运营者放宽限制',
  ],
  [
    "a client may keep at most {0} names and ports here; delete a tunnel first, or ask the relay's operator for more",
    '每个客户端在此最多保留 {0} 个名称和端口，请先删除一个隧道，或请中继的运营者放宽限制',
  ],
  [
    "this client has reached its limit of tunnels, {0} of {1}; stop one first, or ask the relay's operator for more",
    '此客户端最多同时有 {1} 个隧道，现有 {0} 个，请先停止一个，或请中继的运营者放宽限制',
  ],
  [
    "the relay's operator limits the tunnels that this client has at the same time to {0}; stop another first, or ask the operator for more",
    '中继的运营者只允许此客户端同时有 {0} 个隧道，请先停止另一个，或请运营者放宽限制',
  ],
  [
    "this client may have tunnels of the types {0}; choose one of them, or ask the relay's operator",
    '此客户端可用的隧道类型为 {0}，请选择其中之一，或联系中继的运营者',
  ],
  [
    "this client may have the names {0}, not {1}; choose one of them, or ask the relay's operator",
    '此客户端可用的名称为 {0}，不包括 {1}，请选择其中之一，或联系中继的运营者',
  ],
  [
    "this client may have the ports {0}, not {1}; choose one of them, or ask the relay's operator",
    '此客户端可用的端口为 {0}，不包括 {1}，请选择其中之一，或联系中继的运营者',
  ],
  ['name a domain: this client may have the names {0}', '请指定域名：此客户端可用的名称为 {0}'],
  [
    "{0} is not under the relay's domain {1}; choose a name that is, or ask the relay's operator",
    '{0} 不在中继的域名 {1} 之下，请选择其下的名称，或联系中继的运营者',
  ],
  [
    "the relay's operator has taken the type {0} from this client; choose another, or ask the operator",
    '中继的运营者已不再允许此客户端使用 {0} 类型，请换一个，或联系运营者',
  ],
  [
    "the relay's operator has taken the port {0} from this client; choose another, or ask the operator",
    '中继的运营者已不再允许此客户端使用端口 {0}，请换一个，或联系运营者',
  ],
  [
    "the relay's operator has taken the name {0} from this client; choose another, or ask the operator",
    '中继的运营者已不再允许此客户端使用名称 {0}，请换一个，或联系运营者',
  ],
  [
    '{0*} is taken by another client, and so are the names above and below it; choose another',
    '{0*} 及其上下级名称已被其他客户端占用，请换一个',
  ],
  ['{0*} is taken by another client; choose another', '{0*} 已被其他客户端占用，请换一个'],
  [
    '{0*} is taken by another tunnel of this client; choose another, or delete that tunnel',
    '{0*} 已被此客户端的另一个隧道占用，请换一个，或删除那个隧道',
  ],
  ['the private name {0}', '私有名称 {0}'],
  [
    'a private tunnel is called CLIENT/NAME, such as nas/ssh',
    '私有隧道写作“客户端/名称”，例如 nas/ssh',
  ],
  [
    'visitors are for private tunnels; leave them out, or choose the mode private',
    '访客仅用于私有隧道，请不要填写，或选择私有模式',
  ],
  [
    'a private tunnel must be of type udp or tcp, which also carries http; choose one of these',
    '私有隧道的类型须为 tcp（同样可以承载 http）或 udp，请选择其中之一',
  ],
  ['a private tunnel has no public port; give it none', '私有隧道没有公网端口，请不要为它填写端口'],
  [
    "a private tunnel's domain is one label, such as ssh: letters, digits and inner hyphens",
    '私有隧道的名称须为单个标签，例如 ssh，只能包含字母、数字和中间的连字符',
  ],
  ['visitors: {0*}', '访客：{0*}'],
  ['there must be at most {0} names', '最多 {0} 个名称'],
  [
    '{0} is not the name of a client; write the names that clients have at the relay, or * for all its clients',
    '{0} 不是客户端名称，请填写中继中的名称，或用 * 表示其所有客户端',
  ],
  ['{0} is given twice', '{0} 重复出现'],
  ['a visit is asked for with Upgrade: {0} or {1}', '访问须以 Upgrade: {0} 或 {1} 请求'],
  [
    'the private tunnel {0} is of type {1}; visit it with that type',
    '私有隧道 {0} 的类型为 {1}，请按该类型访问',
  ],
  [
    'there is no private tunnel {0} that is running and lets this client in; ask its owner to start it, and to add {1} to its visitors',
    '没有正在运行且允许此客户端访问的私有隧道 {0}，请联系其所有者启动它，并将 {1} 列为访客',
  ],
  [
    '{0*} is in use in another mode; choose that mode, or another name or port',
    '{0*} 正以另一种模式使用，请选择该模式，或换一个名称或端口',
  ],
  [
    'this client has proved too many names in a short time; the relay now accepts one a minute',
    '此客户端在短时间内验证了过多名称，中继现在每分钟只接受一个',
  ],
  [
    'this client has made too many changes in a short time; try again in a minute',
    '此客户端在短时间内更改过多，请在一分钟后重试',
  ],
  [
    "another program on the relay's machine has {0*} now, which this tunnel keeps; the relay retries automatically: ask the relay's operator, or choose another port",
    '中继所在机器上的另一个程序正在使用{0*}，此隧道仍保留它，系统会自动重试；也可以联系中继的运营者，或换一个端口',
  ],
  [
    "{0*} is in use on the relay's machine; choose another",
    '{0*} 在中继所在的机器上已被使用，请换一个',
  ],
  ["{0} is the relay's own name; choose another", '{0} 是中继自己的名称，请换一个'],
  [
    '{0} would take the names of all clients; choose a name below it, such as *.shop.{1}',
    '{0} 将包含所有客户端的名称，请选择更下一级的名称，例如 *.shop.{1}',
  ],
  [
    'the relay gets no certificate for {0}: authorities give those for dns-01 only, which it is not set up for; choose the type http or tls, or ask its operator',
    '中继无法获得 {0} 的证书：证书颁发机构只通过 dns-01 签发此类证书，而中继未配置 dns-01；请选择类型 http 或 tls，或联系其运营者',
  ],
  [
    '{0} is not a domain name; names of other scripts are written in their xn-- form',
    '{0} 不是域名；其他文字的域名须写成 xn-- 形式',
  ],
  [
    "{0} is proved to be another client's; choose another, or ask the relay's operator",
    '{0} 已证明属于另一客户端，请换一个，或联系中继的运营者',
  ],
  [
    "the name {0} was proved to be another client's; choose another, or ask the relay's operator",
    '名称 {0} 已证明属于另一客户端，请换一个，或联系中继的运营者',
  ],
  [
    'to use {0}, prove that it is yours: add the DNS TXT record {1} with the value {2}, and try again (asking the DNS: {3})',
    '要使用 {0}，请证明它属于您：添加 DNS TXT 记录 {1}，值为 {2}，然后重试（查询 DNS 时：{3}）',
  ],
  [
    'to use {0}, prove that it is yours: add the DNS TXT record {1} with the value {2}, and try again',
    '要使用 {0}，请证明它属于您：添加 DNS TXT 记录 {1}，值为 {2}，然后重试',
  ],
  [
    'the tunnel has no name or port here; start it first',
    '此隧道在中继上还没有名称或端口，请先启动它',
  ],
  [
    "the relay's operator sets the policies of this client's tunnels; ask the operator for the change",
    '此客户端隧道的访问策略由中继的运营者设置，请联系运营者更改',
  ],
  [
    "the relay's operator does not let this client choose its visitors; ask for `adit relay client set {0} --own_policies` at the relay",
    '中继的运营者未允许此客户端设置访问策略，请让运营者在中继上运行 `adit relay client set {0} --own_policies`',
  ],
  [
    "the relay cannot read this tunnel's policy; set it again, or ask the relay's operator",
    '中继无法读取此隧道的访问策略，请重新设置，或联系中继的运营者',
  ],
  [
    "the relay's operator has set this policy; ask the operator for the change",
    '此策略由中继的运营者设置，请联系运营者更改',
  ],
  // What is wrong with a policy.
  ['{0}: must be a time zone such as Europe/Berlin', '{0}：须为时区，例如 Europe/Berlin'],
  ['{0}: {1} is not a time zone such as Europe/Berlin', '{0}：{1} 不是时区，例如 Europe/Berlin'],
  [
    '{0}: needs at least one window; leave hours out to be always open',
    '{0}：至少需要一个时段；不填开放时间表示始终开放',
  ],
  ['{0}: has more than {1} windows', '{0}：时段超过 {1} 个'],
  ['{0}: names a day twice', '{0}：有重复的日子'],
  ['{0}: {1} is not one of {2}', '{0}：{1} 须为以下之一：{2}'],
  ['{0}: {1} is not a time of day such as 08:00', '{0}：{1} 不是时刻，例如 08:00'],
  [
    '{0}: {1} is not a time of day such as 18:00 or 24:00',
    '{0}：{1} 不是时刻，例如 18:00 或 24:00',
  ],
  ['{0}: there is no such field', '{0}：没有这个字段'],
  ['{0}: must not be a JSON {1}', '{0}：不能是 JSON 的 {1} 类型'],
  ['{0}: is not a JSON object', '{0}：不是 JSON 对象'],
  ['{0}: something follows the JSON object', '{0}：JSON 对象之后还有内容'],
  ['{0}: has more than {1} rules', '{0}：规则超过 {1} 条'],
  [
    "{0}: must be the name of a provider in the relay's configuration",
    '{0}：须为中继配置中某个身份提供方的名称',
  ],
  [
    '{0}: lets in everybody whom the provider knows; leave out emails and groups, or anyone',
    '{0}：表示身份提供方的任何用户均可进入；请去掉 emails 和 groups，或去掉 anyone',
  ],
  [
    '{0}: set emails or groups to choose who is let in, or anyone to let in everybody whom the provider knows',
    '{0}：请以 emails 或 groups 说明允许谁进入；或以 anyone 允许身份提供方的任何用户',
  ],
  [
    '{0}: {1} is neither an address such as ann@example.com nor a whole domain such as @example.com',
    '{0}：{1} 既不是 ann@example.com 这样的地址，也不是 @example.com 这样的整个域名',
  ],
  ['{0}: must have 1 to 256 bytes', '{0}：须为 1 到 256 字节'],
  [
    'the relay has no identity provider; its operator adds one to relay.toml as [[sign_in]]',
    '中继没有身份提供方；请其运营者在 relay.toml 中以 [[sign_in]] 添加',
  ],
  ['the relay has no identity provider {0}; it has {1}', '中继没有身份提供方 {0}；现有 {1}'],
  ['{0}: has more than {1} names', '{0}：名称超过 {1} 个'],
  ['{0}: has more than {1} KiB', '{0}：超过 {1} KiB'],
  ['{0}: has more than {1} certificates', '{0}：证书超过 {1} 个'],
  [
    '{0}: contains a private key, which only its owner should have: give the certificates only',
    '{0}：其中含有私钥，私钥只应由其所有者持有；请只提供证书',
  ],
  ['{0}: has a {1} in it where only certificates belong', '{0}：其中含有 {1}，而此处需要证书'],
  [
    '{0}: has no PEM certificate: text that begins with -----BEGIN CERTIFICATE-----',
    '{0}：没有 PEM 证书，即以 -----BEGIN CERTIFICATE----- 开头的文本',
  ],
  [
    '{0}: the certificate at place {1} has a key of more than {2} bits',
    '{0}：第 {1} 个证书的密钥超过 {2} 位',
  ],
  [
    "{0}: the certificate at place {1} is of an old version (v{2}), which does not say whether it is an authority's",
    '{0}：第 {1} 个证书为旧版本（v{2}），其中未说明是否属于颁发机构',
  ],
  [
    "{0}: the certificate at place {1} is not an authority's: give the certificate that issued it, and add the fingerprint of this one to the names",
    '{0}：第 {1} 个证书不属于颁发机构；请填入签发它的证书，并将此证书的指纹列入名称',
  ],
  ['{0}: the certificate at place {1} cannot be read: {2*}', '{0}：第 {1} 个证书无法读取：{2*}'],
  [
    '{0}: {1} is not a fingerprint: write sha256: and 64 hexadecimal digits',
    '{0}：{1} 不是指纹，即 sha256: 加 64 位十六进制数字',
  ],
  [
    '{0}: {1} is not a whole domain such as @example.com',
    '{0}：{1} 不是 @example.com 这样的整个域名',
  ],
  ['{0}: has more than {1} users', '{0}：用户超过 {1} 个'],
  ['{0}: has more than {1} webhooks', '{0}：webhook 超过 {1} 个'],
  ['{0}: must begin with a slash, such as /hooks/github', '{0}：须以斜杠开头，例如 /hooks/github'],
  [
    '{0}: must be plain, such as /hooks/github: no encoded characters, wildcards, parameters, nor segments that are empty or begin or end with a dot',
    '{0}：须为 /hooks/github 这样的普通路径：不含编码字符、通配符、参数，也没有为空或以点开头、结尾的段',
  ],
  ["{0}: is the relay's own", '{0}：由中继自用'],
  [
    '{0}: is a duplicate for this provider; a webhook may have several secrets',
    '{0}：与此提供方重复；一个 webhook 可有多个密钥',
  ],
  ['{0}: are missing', '{0}：缺少'],
  ['{0}: has more than {1} secrets', '{0}：密钥超过 {1} 个'],
  ['{0}: is for the provider hmac', '{0}：仅用于提供方 hmac'],
  [
    '{0}: must be base64, with or without whsec_ before it',
    '{0}：须为 base64，前面可有或没有 whsec_',
  ],
  ['{0}: must be hex or base64', '{0}：须为 hex 或 base64'],
  ['{0}: must be one of {1}', '{0}：须为以下之一：{1}'],
  ['{0}: must be sha256, sha512 or sha1', '{0}：须为 sha256、sha512 或 sha1'],
  [
    "{0}: must be the application's public key: 64 hexadecimal digits",
    '{0}：须为应用的公钥：64 位十六进制数字',
  ],
  ['{0}: must be the name of the header that has the signature', '{0}：须为签名所在的请求头名称'],
  [
    '{0}: must be the verification key: base64 of a public key of ECDSA by P-256',
    '{0}：须为验证密钥：ECDSA（P-256）公钥的 base64',
  ],
  ['{0}: must have {1} to {2} bytes', '{0}：须为 {1} 到 {2} 字节'],
  [
    '{0}: must have at most 64 characters of ASCII and no space',
    '{0}：最多 64 个 ASCII 字符，且不含空格',
  ],
  [
    '{0}: must not begin or end with a space, nor have line ends',
    '{0}：首尾不能有空格，也不能有换行',
  ],
  ['{0}: {1} is not an address or CIDR', '{0}：{1} 不是地址或 CIDR'],
  [
    '{0}: {1} is not a country such as CN, or a region such as US-CA',
    '{0}：{1} 不是国家（例如 CN）或地区（例如 US-CA）',
  ],
  ['{0}: must be deny or allow', '{0}：须为 deny 或 allow'],
  ['{0}: must not be negative', '{0}：不能为负数'],
  ['{0}: must be 0 to 1000000', '{0}：须为 0 到 1000000'],
  ['{0}: must be 0, or at least {1} bytes a second', '{0}：须为 0，或每秒至少 {1} 字节'],
  ['{0}: must have 1 to 128 bytes and no colon', '{0}：须为 1 到 128 字节，且不含冒号'],
  ['{0}: is a duplicate', '{0}：重复'],
  ['{0}: is missing', '{0}：缺少'],
  ['{0}: has more than 72 bytes', '{0}：超过 72 字节'],
  ['{0}: cannot be hashed', '{0}：无法计算哈希'],
  ["{0}: is neither bcrypt's nor argon2id's", '{0}：既不是 bcrypt 也不是 argon2id 的哈希'],
  [
    '{0}: costs the relay too much; use bcrypt with a cost of {1} at most, or argon2id with {2} KiB and {3} passes at most',
    '{0}：对中继开销过大；请使用成本不超过 {1} 的 bcrypt，或不超过 {2} KiB、{3} 轮的 argon2id',
  ],
  [
    'the policy of {0} has changed since it was read, so nothing was changed; read it again',
    '{0} 的策略在读取之后已更改，因此未作任何更改；请重新读取',
  ],
  [
    '{0} is served by the tunnel of {1}, whose policy applies to it; change that policy, or give the name its own tunnel first',
    '{0} 由 {1} 的隧道承载，适用该隧道的策略；请修改那条策略，或先为此名称建立自己的隧道',
  ],
  [
    '{0} is in use now; stop its tunnel first, or revoke its client',
    '{0} 正在使用；请先停止其隧道，或吊销其客户端',
  ],
  ['no client has {0}', '没有客户端拥有 {0}'],
  // What a sentence above is about; last, since they fit the beginnings of others.
  ['the name {0}', '名称 {0}'],
  ['the {0} port {1}', '{0} 端口 {1}'],
];
