internal import Tidemark
internal import TidemarkEngine

/// Messages as JSON, field by field as in `WireProtocol.md`.
extension JSONOutput {
  mutating func write(_ message: WireMessage) {
    object { output in
      output.text("type", message.kind.name)
      switch message {
      case .helloRequest(let request): output.fields(request)
      case .helloAnswer(let answer): output.fields(answer)
      case .pushRequest(let request): output.fields(request)
      case .pushAnswer(let answer):
        output.write(answer.range)
        output.write(answer.mark)
        if !answer.current.isEmpty {
          output.objects("current", answer.current) { $0.fields($1) }
        }
      case .pullRequest(let request): output.fields(request)
      case .pullAnswer(let answer):
        output.write(answer.range)
        output.position("cursor", answer.cursor)
        output.write(answer.mark)
        if let reach = answer.reach { output.word("reach", reach) }
        output.objects("entries", answer.entries) { $0.fields($1) }
      case .valuesRequest(let request):
        output.replica("replica", request.replica)
        output.objects("keys", request.keys) { $0.content("key", $1) }
        if request.takesBlobs { output.flag("takes_blobs") }
      case .valuesAnswer(let answer):
        output.write(answer.range)
        output.number("answered", answer.answered)
        if let reach = answer.reach { output.word("reach", reach) }
        output.objects("entries", answer.entries) { $0.fields($1) }
      case .digestRequest(let request):
        output.replica("replica", request.replica)
        output.write(request.scope)
        output.hexadecimals("paths", request.paths)
      case .digestAnswer(let answer): output.fields(answer)
      case .downloadRequest(let request): output.fields(request)
      case .downloadAnswer(let answer):
        output.number("length", answer.length)
        output.content("bytes", answer.bytes)
      case .attachRequest(let request): output.fields(request)
      case .attachAnswer(let answer):
        output.write(answer.range)
        output.number("received", answer.received)
        if let rejection = answer.rejection { output.fields(rejection) }
      case .fetchRequest(let request): output.fields(request)
      case .fetchAnswer(let answer):
        if let bytes = answer.bytes { output.content("bytes", bytes) }
      case .error(let error): output.fields(error)
      }
    }
  }

  private mutating func fields(_ request: HelloRequest) {
    replica("replica", request.replica)
    position("cursor", request.cursor)
    write(request.scope)
    if request.hasResynced { flag("has_resynced") }
    if !request.reads { flag("reads_nothing") }
  }

  private mutating func fields(_ answer: HelloAnswer) {
    replica("feed", answer.feed)
    write(answer.range)
    write(answer.mark)
    number("time", answer.time)
    if let seconds = answer.leaseSeconds { number("lease_seconds", UInt64(seconds)) }
    if answer.isLeaseExpired { flag("lease_expired") }
    write(answer.limits)
    if let reach = answer.reach { word("reach", reach) }
    if let most = answer.attachmentBytes { number("attachment_bytes", most) }
    guard !answer.policies.isEmpty else { return }
    objects("policies", answer.policies) { output, row in
      output.content("prefix", row.prefix.bytes)
      output.text("policy", row.policy.jsonName)
    }
  }

  private mutating func fields(_ request: PushRequest) {
    replica("replica", request.replica)
    number("number", request.number)
    word("batch", request.batchID.bits)
    if let previous = request.previousBatchID { word("previous_batch", previous.bits) }
    if request.knownHead != .beginning { position("known_head", request.knownHead) }
    if let reach = request.reach { word("reach", reach) }
    objects("changes", request.changes) { $0.fields($1) }
  }

  private mutating func fields(_ request: PullRequest) {
    replica("replica", request.replica)
    position("after", request.after)
    write(request.scope)
    write(request.limits)
    number("wait_milliseconds", UInt64(request.waitMilliseconds))
    if request.takesBlobs { flag("takes_blobs") }
    if request.everyVersion { flag("every_version") }
    if request.ownOnly { flag("own_only") }
  }

  private mutating func fields(_ answer: DigestAnswer) {
    write(answer.range)
    position("position", answer.position)
    if let reach = answer.reach { word("reach", reach) }
    objects("parts", answer.parts) { $0.fields($1) }
  }

  private mutating func fields(_ part: DigestPart) {
    object("total") { $0.fields(part.total) }
    switch part.content {
    case .sums(let sums): objects("sums", sums) { $0.fields($1) }
    case .keys(let keys):
      objects("keys", keys) { output, key in
        output.content("key", key.key)
        output.position("position", key.position)
        output.word("sum", key.high, key.low)
      }
    }
  }

  private mutating func fields(_ request: DownloadRequest) {
    replica("replica", request.replica)
    position("position", request.position)
    number("offset", request.offset)
    number("limit", request.limit)
  }

  private mutating func fields(_ request: AttachRequest) {
    replica("replica", request.replica)
    content("key", request.key)
    text("attachment", request.attachment.engineID.text)
    number("offset", request.offset)
    content("bytes", request.bytes)
  }

  private mutating func fields(_ request: ContentRequest) {
    replica("replica", request.replica)
    content("key", request.key)
    text("attachment", request.attachment.engineID.text)
    number("offset", request.offset)
    number("limit", request.limit)
  }

  private mutating func fields(_ rejection: Rejection) {
    text("code", rejection.code)
    text("message", rejection.message)
  }

  private mutating func fields(_ sum: DigestSum) {
    number("keys", sum.keys)
    if sum.keys > 0 { word("sum", sum.high, sum.low) }
  }

  private mutating func fields(_ error: PeerError) {
    text("kind", error.kind.jsonName)
    text("message", error.message)
    if let seconds = error.secondsToWait { number("retry_after_seconds", UInt64(seconds)) }
  }

  // MARK: Parts

  private mutating func write(_ scope: SyncScope) {
    guard !scope.isEverything else { return }
    object("scope") { output in
      output.contents("labels", scope.labels.map(\.bytes))
      output.contents("prefixes", scope.prefixBytes)
    }
  }

  private mutating func write(_ limits: SyncLimits) {
    object("limits") { output in
      output.number("changes", limits.changes)
      output.number("bytes", limits.bytes)
    }
  }

  private mutating func write(_ range: FeedRange) {
    object("range") { output in
      output.objects("epochs", range.epochs) { output, row in
        output.word("epoch", row.epoch)
        output.number("first", row.firstOffset)
      }
      output.number("head", range.head)
      output.number("truncated_through", range.truncatedThrough)
    }
  }

  private mutating func write(_ mark: ReplicaMark) {
    object("mark") { output in
      output.number("number", mark.number)
      output.word("batch", mark.batchID.bits)
      output.objects("verdicts", mark.verdicts) { output, verdict in
        output.text("verdict", verdict.jsonName)
        if let position = verdict.position { output.position("position", position) }
        guard case .rejected(let rejection) = verdict else { return }
        output.fields(rejection)
      }
    }
  }

  private mutating func fields(_ change: PushedChange) {
    number("seq", change.sequence)
    text("op", change.kind == .put ? "put" : "delete")
    content("key", change.key)
    switch change.base {
    case .absent: break
    case .position(let base): position("base", base)
    case .operation(let sequence): number("base_seq", sequence)
    }
    word("commit_time", change.commitTime)
    if change.atomicGroup != 0 { number("atomic_group", change.atomicGroup) }
    fields(change.content, change.time, hasValue: change.kind == .put)
  }

  private mutating func fields(_ entry: FeedEntry) {
    position("position", entry.position)
    text("op", entry.kind.jsonName)
    plain("op_id") {
      $0.append(contentsOf: entry.operation.replica.description.utf8)
      $0.append(UInt8(ascii: "."))
      $0.append(contentsOf: String(entry.operation.sequence).utf8)
    }
    if entry.kind != .own { content("key", entry.key) }
    word("commit_time", entry.commitTime)
    if let received = entry.received { word("received", received) }
    fields(entry.content, entry.time, hasValue: entry.kind == .put)
  }

  private mutating func fields(_ content: SyncContent, _ time: Timestamp?, hasValue: Bool) {
    if let blob = content.blob {
      text("blob", blob.engineID.text)
    } else if hasValue {
      self.content("value", content.value)
    }
    if let hash = content.hash { self.content("hash", hash) }
    if !content.labels.isEmpty { contents("labels", content.labels.map(\.bytes)) }
    if let seconds = content.maxAgeSeconds { number("max_age", UInt64(seconds)) }
    if let attachment = content.attachment { text("attachment", attachment.engineID.text) }
    guard let time else { return }
    var text: [UInt8] = []
    time.appendRFC3339(to: &text)
    if Timestamp(rfc3339: text.rawSpan) == time {
      plain("time") { $0.append(contentsOf: text) }
    } else {
      pair("time_unix", time.seconds, time.nanoseconds)
    }
  }
}

extension Verdict {
  var jsonName: String {
    switch self {
    case .applied: "applied"
    case .duplicate: "duplicate"
    case .conflict: "conflict"
    case .lost: "lost"
    case .rejected: "rejected"
    case .aborted: "aborted"
    }
  }
}

extension ConflictPolicy {
  var jsonName: String {
    switch self {
    case .detect: "detect"
    case .lastWriterWins: "last_writer_wins"
    }
  }
}

extension FeedEntry.Kind {
  var jsonName: String {
    switch self {
    case .put: "put"
    case .delete: "delete"
    case .own: "own"
    case .left: "left"
    }
  }
}

extension PeerError.Kind {
  var jsonName: String {
    switch self {
    case .unavailable: "unavailable"
    case .busy: "busy"
    case .unauthorized: "unauthorized"
    case .forbidden: "forbidden"
    case .cursorGone: "cursor_gone"
    case .leaseExpired: "lease_expired"
    case .malformed: "malformed"
    case .failed: "failed"
    }
  }
}
