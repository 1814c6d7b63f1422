internal import Tidemark
internal import TidemarkEngine

// Each `visit` codes, decodes or checks a message, as the visitor says; see `WireProtocol.md`.

extension HelloRequest: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.value("replica", &replica)
    try v.flags(3)
    try v.position("cursor", &cursor, isOptional: true)
    try v.scope(&scope)
    try v.flag("has_resynced", 1, &hasResynced)
    var readsNothing = !reads
    try v.flag("reads_nothing", 2, &readsNothing)
    reads = !readsNothing
  }
}

extension HelloAnswer: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.value("feed", &feed)
    if v.isJSON {
      try v.part("range", &range)
      try v.part("mark", &mark)
      try v.number("time", &time, in: 0...UInt64.max)
    }
    try v.flags(3)
    var hasLease = leaseSeconds != nil
    try v.presence(of: "lease_seconds", &hasLease)
    if hasLease {
      var seconds = leaseSeconds ?? 0
      try v.number("lease_seconds", &seconds, in: 0...UInt32.max)
      leaseSeconds = seconds
    }
    if !v.isJSON { try v.number("time", &time, in: 0...UInt64.max) }
    try v.flag("lease_expired", 2, &isLeaseExpired)
    try v.part("limits", &limits)
    if !v.isJSON {
      try v.part("range", &range)
      try v.part("mark", &mark)
    }
    try v.reach(&reach)
    try v.field(2, "attachment_bytes", &attachmentBytes, 0) { (most, v) throws(FormatError) in
      try v.number("attachment_bytes", &most, in: 0...Limits.attachmentBytes)
    }
    try visitPolicies(&v)
  }

  private mutating func visitPolicies(_ v: inout WireVisitor) throws(FormatError) {
    if v.normalizes {
      policies.sort { $0.prefix.bytes.lexicographicallyPrecedes($1.prefix.bytes) }
    }
    var list: [CollectionPolicy]? = policies.isEmpty ? nil : policies
    let blank = CollectionPolicy(prefix: [UInt8](), policy: .detect)
    try v.field(3, "policies", &list, []) { (list, v) throws(FormatError) in
      try v.list("policies", &list, blank, count: 0...WireLimits.policies, each: 2) {
        (row, v) throws(FormatError) in
        var prefix = row.prefix.bytes
        try v.bytes("prefix", &prefix, atMost: WireLimits.policyBytes)
        row.prefix = Key(prefix)
        try v.value("policy", &row.policy)
      }
      guard v.isJSON || !list.isEmpty else { throw FormatError("a list of no policies") }
    }
    policies = list ?? []
    try policies.check()
    for (policy, next) in zip(policies, policies.dropFirst())
    where !policy.prefix.bytes.lexicographicallyPrecedes(next.prefix.bytes) {
      throw FormatError("policies are not in the order of their prefixes")
    }
  }
}

extension PushRequest: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.value("replica", &replica)
    try v.count("number", &number)
    try v.value("batch", &batchID)
    try v.field(2, "previous_batch", &previousBatchID, .none) { (id, v) throws(FormatError) in
      try v.value("previous_batch", &id)
    }
    if v.has(knownHead != .beginning) {
      try v.position("known_head", &knownHead, isOptional: true)
    }
    try v.reach(&reach)
    try v.changes(&changes)
  }
}

extension PushAnswer: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.part("range", &range)
    try v.part("mark", &mark)
    if v.has(!current.isEmpty) { try v.rows("current", &current, isOptional: true) }
  }
}

extension PullRequest: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.value("replica", &replica)
    try v.flags(14)
    try v.position("after", &after)
    try v.scope(&scope)
    try v.part("limits", &limits, isOptional: true)
    try v.number("wait_milliseconds", &waitMilliseconds, in: 0...UInt32.max, isOptional: true)
    try v.flag("takes_blobs", 2, &takesBlobs)
    try v.flag("every_version", 4, &everyVersion)
    try v.flag("own_only", 8, &ownOnly)
  }
}

extension PullAnswer: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.part("range", &range)
    try v.position("cursor", &cursor)
    try v.part("mark", &mark)
    try v.reach(&reach)
    try v.rows("entries", &entries)
  }
}

extension ValuesRequest: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.value("replica", &replica)
    try v.flags(1)
    try v.list("keys", &keys, [], count: 0...WireLimits.rows, each: 2) {
      (key, v) throws(FormatError) in try v.key(&key)
    }
    try v.flag("takes_blobs", 1, &takesBlobs)
  }
}

extension ValuesAnswer: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.part("range", &range)
    try v.number("answered", &answered, in: 0...WireLimits.rows)
    try v.reach(&reach)
    try v.rows("entries", &entries)
  }
}

extension DigestRequest: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.value("replica", &replica)
    try v.scope(&scope)
    try v.paths("paths", &paths)
    guard (1...WireLimits.digestPaths).contains(paths.count) else {
      throw FormatError(
        "\(paths.count) parts of a digest; 1 to \(WireLimits.digestPaths) are allowed")
    }
    for path in paths {
      try WireBounds.check(path.count, in: 0...WireLimits.pathBytes, "the length of a path")
    }
    // So no key is in two parts of one answer.
    for (path, next) in zip(paths, paths.dropFirst()) {
      guard path.lexicographicallyPrecedes(next), !next.starts(with: path) else {
        throw FormatError("parts of a digest are not in order, or one lies within another")
      }
    }
  }
}

extension DigestAnswer: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.part("range", &range)
    try v.position("position", &position)
    try v.reach(&reach)
    let blank = DigestPart(total: DigestSum(), content: .keys([]))
    // How many keys the next part and all after it may have.
    var rows = WireLimits.rows
    try v.list("parts", &parts, blank, count: 1...WireLimits.digestPaths, each: 3) {
      (part, v) throws(FormatError) in try part.visit(&v, &rows)
    }
  }
}

extension AttachRequest: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.value("replica", &replica)
    try v.key(&key)
    try v.attachment("attachment", &attachment)
    try v.number("offset", &offset, in: 0...Limits.attachmentBytes)
    try v.bytes("bytes", &bytes, atMost: Self.mostBytes)
    guard offset <= attachment.length, bytes.count <= attachment.length - offset else {
      throw FormatError("a part reaches beyond its content")
    }
    guard offset % Self.partBytes == 0 || bytes.isEmpty,
      bytes.count % Self.partBytes == 0 || offset + bytes.count == attachment.length
    else {
      throw FormatError("a part does not begin and end at a multiple of \(Self.partBytes) bytes")
    }
  }
}

extension AttachAnswer: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.part("range", &range)
    try v.number("received", &received, in: 0...Limits.attachmentBytes)
    var isRefused = rejection != nil
    try v.flags(1)
    try v.presence(of: "code", &isRefused)
    guard isRefused else { return }
    var refusal = rejection ?? SyncRejection(code: "", message: "")
    try refusal.visit(&v)
    rejection = refusal
  }
}

extension ContentRequest: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.value("replica", &replica)
    try v.key(&key)
    try v.attachment("attachment", &attachment)
    try v.number("offset", &offset, in: 0...Limits.attachmentBytes)
    try v.number("limit", &limit, in: 1...AttachRequest.mostBytes)
    if v.has(position != .beginning) {
      try v.position("position", &position, isOptional: true)
    }
  }
}

extension ContentAnswer: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    var isThere = bytes != nil
    try v.flags(1)
    try v.presence(of: "bytes", &isThere)
    guard isThere else { return }
    var part = bytes ?? []
    try v.bytes("bytes", &part, atMost: AttachRequest.mostBytes)
    bytes = part
  }
}

extension PeerError: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.value("kind", &kind)
    if v.isJSON {
      try v.text("message", &message, atMost: WireLimits.textBytes, isOptional: true)
    }
    var seconds = secondsToWait ?? 0
    var hasSeconds = retryAfter != nil
    try v.flags(1)
    try v.presence(of: "retry_after_seconds", &hasSeconds)
    if hasSeconds { try v.number("retry_after_seconds", &seconds, in: 0...UInt32.max) }
    if v.isReading { retryAfter = hasSeconds ? .seconds(seconds) : nil }
    if !v.isJSON { try v.text("message", &message, atMost: WireLimits.textBytes) }
  }
}
