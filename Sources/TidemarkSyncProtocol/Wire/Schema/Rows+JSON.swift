internal import Tidemark
internal import TidemarkEngine

/// Codes, decodes or checks lists of changes and feed entries; in frames by ``FrameCursor``.
extension WireVisitor {
  mutating func changes(_ changes: inout [PushedChange]) throws(FormatError) {
    if isJSON {
      try list("changes", &changes, .blank, count: 0...WireLimits.rows, each: 1) {
        (change, v) throws(FormatError) in
        try change.visit(&v)
        try change.check()
      }
    } else {
      var state = RowState()
      if frame.mode != .check { try frame.rows(&changes, &state) }
      // A span, as iterating over the array would copy each change.
      let rows = changes.span
      for index in rows.indices { try rows[index].check() }
    }
    try WireBounds.check(rows: changes.count)
  }

  mutating func rows(
    _ name: StaticString, _ entries: inout [FeedEntry], isOptional: Bool = false
  ) throws(FormatError) {
    var isThere = frame.mode != .writeHead
    if isOptional, isJSON { try presence(of: name, &isThere) }
    guard isThere else { return }
    if isJSON {
      try list(name, &entries, .blank, count: 0...WireLimits.rows, each: 1) {
        (entry, v) throws(FormatError) in
        try entry.visit(&v)
        try entry.check()
      }
    } else {
      if frame.mode != .check { try frame.entries(&entries) }
      let rows = entries.span
      for index in rows.indices { try rows[index].check() }
    }
    try WireBounds.check(rows: entries.count)
  }

  /// The content of a row, and the time that its program gave it.
  fileprivate mutating func content(
    _ content: inout SyncContent, _ time: inout Timestamp?, hasValue: Bool
  ) throws(FormatError) {
    let isWritten = !isReading && hasValue && content.blob == nil
    var value = isWritten ? content.value : nil
    try field(0, "blob", &content.blob, .blank) { (blob, v) throws(FormatError) in
      try v.value("blob", &blob)
    }
    try field(0, "value", &value, []) { (value, v) throws(FormatError) in
      try v.bytes("value", &value, atMost: Limits.valueBytes)
    }
    guard hasValue ? value == nil || content.blob == nil : value == nil && content.blob == nil
    else { throw FormatError("a value where none may be") }
    guard !hasValue || value != nil || content.blob != nil else {
      throw FormatError("the field value is missing")
    }
    if isReading { content.value = value ?? [] }
    try field(0, "hash", &content.hash, []) { (hash, v) throws(FormatError) in
      try v.bytes("hash", &hash, atMost: Limits.hashBytes)
    }
    try contents("labels", &content.labels, atMost: WireLimits.scopeRows, each: 1)
    try field(0, "max_age", &content.maxAgeSeconds, 0) { (seconds, v) throws(FormatError) in
      try v.number("max_age", &seconds, in: 0...UInt32.max)
    }
    try field(0, "attachment", &content.attachment, .blank) {
      (attachment, v) throws(FormatError) in try v.value("attachment", &attachment)
    }
    try self.time(&time)
  }
}

extension PushedChange {
  fileprivate mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.number("seq", &sequence, in: 0...UInt64.max)
    try v.value("op", &kind)
    try v.bytes("key", &key, atMost: Limits.keyBytes)
    var position: FeedPosition? = if case .position(let base) = base { base } else { nil }
    var own: UInt64? = if case .operation(let own) = base { own } else { nil }
    try v.field(0, "base", &position, .beginning) { (base, v) throws(FormatError) in
      try v.value("base", &base)
    }
    try v.field(0, "base_seq", &own, 0) { (own, v) throws(FormatError) in
      try v.number("base_seq", &own, in: 0...UInt64.max)
    }
    guard position == nil || own == nil else { throw FormatError("two bases in a change") }
    base =
      position.map(ChangeBase.position) ?? own.map { ChangeBase.operation(sequence: $0) } ?? .absent
    try v.value("commit_time", &commitTime)
    if v.has(atomicGroup != 0) {
      try v.number("atomic_group", &atomicGroup, in: 0...UInt64.max, isOptional: true)
    }
    try v.content(&content, &time, hasValue: kind == .put)
  }
}

extension FeedEntry {
  fileprivate mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.value("position", &position)
    try v.value("op", &kind)
    try v.value("op_id", &operation)
    var named: [UInt8]? = kind == .own ? nil : key
    try v.field(0, "key", &named, []) { (key, v) throws(FormatError) in
      try v.bytes("key", &key, atMost: Limits.keyBytes)
    }
    key = named ?? []
    try v.value("commit_time", &commitTime, isOptional: true)
    try v.field(0, "received", &received, 0) { (time, v) throws(FormatError) in
      try v.value("received", &time)
    }
    try v.content(&content, &time, hasValue: kind == .put)
  }
}
