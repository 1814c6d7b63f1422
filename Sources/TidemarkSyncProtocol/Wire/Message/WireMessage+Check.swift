internal import Tidemark
package import TidemarkEngine

/// Rules that hold for a message beyond its types, whoever writes or reads it.
extension WireMessage {
  package func check() throws(FormatError) {
    switch self {
    case .helloRequest(let request):
      try request.cursor.check()
      try request.scope.check()
    case .helloAnswer(let answer): try answer.check()
    case .pushRequest(let request):
      try Self.check(count: request.number)
      try request.knownHead.check()
      try Self.check(rows: request.changes.count)
      let changes = request.changes.span
      for index in changes.indices { try changes[index].check() }
    case .pushAnswer(let answer):
      try answer.range.check()
      try answer.mark.check()
      try Self.check(answer.current)
    case .pullRequest(let request):
      try request.after.check()
      try request.scope.check()
      try request.limits.check()
    case .pullAnswer(let answer):
      try answer.range.check()
      try answer.cursor.check()
      try answer.mark.check()
      try Self.check(answer.entries)
    case .valuesRequest(let request):
      try Self.check(rows: request.keys.count)
      for key in request.keys { try Self.check(key: key) }
    case .valuesAnswer(let answer):
      try answer.range.check()
      guard answer.answered >= 0 else { throw FormatError("a number is negative") }
      try Self.check(rows: answer.answered)
      try Self.check(answer.entries)
    case .digestRequest(let request):
      try request.scope.check()
      try request.checkPaths()
    case .digestAnswer(let answer): try answer.check()
    case .downloadRequest(let request):
      try request.position.check()
      try Self.check(bytes: request.offset)
      guard (1...DownloadRequest.mostBytes).contains(request.limit) else {
        throw FormatError(
          "the limit is \(request.limit); 1 to \(DownloadRequest.mostBytes) bytes are allowed")
      }
    case .downloadAnswer(let answer):
      try Self.check(bytes: answer.length)
      guard answer.bytes.count <= min(answer.length, DownloadRequest.mostBytes) else {
        throw FormatError("a part is longer than it may be")
      }
    case .attachRequest, .attachAnswer, .fetchRequest, .fetchAnswer: try checkAttachment()
    case .error(let error):
      guard error.message.utf8.count <= WireLimits.textBytes else {
        throw FormatError("text too long")
      }
    }
  }

  fileprivate static func check(rows: Int) throws(FormatError) {
    guard rows <= WireLimits.rows else {
      throw FormatError("\(rows) rows in one message; at most \(WireLimits.rows) are allowed")
    }
  }

  /// Lengths of values, and places in them.
  fileprivate static func check(bytes: Int) throws(FormatError) {
    guard (0...Limits.valueBytes).contains(bytes) else {
      throw FormatError("a length is \(bytes); 0 to \(Limits.valueBytes) are allowed")
    }
  }

  fileprivate static func check(count: UInt64) throws(FormatError) {
    guard count < WireLimits.counts else {
      throw FormatError("a number is \(count); at most \(WireLimits.counts - 1) is allowed")
    }
  }

  package static func check(key: [UInt8]) throws(FormatError) {
    guard !key.isEmpty, key.count <= Limits.keyBytes else {
      throw FormatError("a key has \(key.count) bytes; 1 to \(Limits.keyBytes) are allowed")
    }
  }

  private static func check(_ entries: [FeedEntry]) throws(FormatError) {
    try check(rows: entries.count)
    for entry in entries { try entry.check() }
  }
}

extension HelloAnswer {
  fileprivate func check() throws(FormatError) {
    try range.check()
    try mark.check()
    try limits.check()
    try checkAttachments()
    try Self.check(policies)
    for (policy, next) in zip(policies, policies.dropFirst())
    where !policy.prefix.bytes.lexicographicallyPrecedes(next.prefix.bytes) {
      throw FormatError("policies are not in the order of their prefixes")
    }
  }

  package static func check(_ policies: [CollectionPolicy]) throws(FormatError) {
    let bytes = policies.reduce(0) { $0 + $1.prefix.bytes.count }
    guard policies.count <= WireLimits.policies, bytes <= WireLimits.policyBytes else {
      throw FormatError(
        "\(policies.count) policies with prefixes of \(bytes) bytes; at most "
          + "\(WireLimits.policies) with \(WireLimits.policyBytes) bytes are allowed")
    }
  }
}

extension Position {
  fileprivate func check() throws(FormatError) { try WireMessage.check(count: offset) }
}

extension OperationID {
  fileprivate func check() throws(FormatError) { try WireMessage.check(count: sequence) }
}

extension SyncScope {
  fileprivate func check() throws(FormatError) {
    guard labels.count <= WireLimits.scopeRows, prefixBytes.count <= WireLimits.scopeRows else {
      throw FormatError(
        "a scope has \(labels.count) labels and \(prefixBytes.count) prefixes; at most "
          + "\(WireLimits.scopeRows) of each are allowed")
    }
    try EntryLabel.check(labels)
    for (index, prefix) in prefixBytes.enumerated() {
      guard prefix.count <= Limits.keyBytes else {
        throw FormatError(
          "a prefix has \(prefix.count) bytes; at most \(Limits.keyBytes) are allowed")
      }
      guard index == 0 || prefixBytes[index - 1].lexicographicallyPrecedes(prefix) else {
        throw FormatError("prefixes are not in order")
      }
    }
  }
}

extension EntryLabel {
  fileprivate static func check(_ labels: [EntryLabel]) throws(FormatError) {
    for (index, label) in labels.enumerated() {
      guard !label.bytes.isEmpty, label.bytes.count <= Limits.labelBytes else {
        throw FormatError(
          "a label has \(label.bytes.count) bytes; 1 to \(Limits.labelBytes) are allowed")
      }
      guard index == 0 || labels[index - 1] < label else {
        throw FormatError("labels are not in order")
      }
    }
  }
}

extension SyncLimits {
  fileprivate func check() throws(FormatError) {
    guard (1...WireLimits.statedLimit).contains(changes),
      (1...WireLimits.statedLimit).contains(bytes)
    else {
      throw FormatError(
        "limits are \(changes) changes and \(bytes) bytes; 1 to \(WireLimits.statedLimit) are "
          + "allowed")
    }
  }
}

extension FeedRange {
  package func check() throws(FormatError) {
    try WireMessage.check(count: head)
    try WireMessage.check(count: truncatedThrough)
    guard epochs.count <= Limits.epochs else {
      throw FormatError("\(epochs.count) epochs; at most \(Limits.epochs) are allowed")
    }
    // An epoch in which nothing was written begins where the next one does.
    var first: UInt64 = 1
    for row in epochs {
      guard row.firstOffset >= first else { throw FormatError("epochs are not in order") }
      first = row.firstOffset
    }
    try WireMessage.check(count: first)
  }
}

extension ReplicaMark {
  fileprivate func check() throws(FormatError) {
    try WireMessage.check(count: number)
    try WireMessage.check(rows: verdicts.count)
    for verdict in verdicts {
      switch verdict {
      case .applied(let position), .duplicate(let position), .conflict(let position),
        .lost(let position):
        try position.check()
      case .rejected(let rejection):
        guard rejection.code.utf8.count <= WireLimits.codeBytes,
          rejection.message.utf8.count <= WireLimits.textBytes
        else { throw FormatError("text too long") }
      case .aborted: break
      }
    }
  }
}

extension SyncContent {
  fileprivate func check(isPut: Bool) throws(FormatError) {
    guard isPut || value.isEmpty else { throw FormatError("a value where none may be") }
    guard value.count <= Limits.valueBytes else {
      throw FormatError(
        "a value has \(value.count) bytes; at most \(Limits.valueBytes) are allowed")
    }
    if let blob {
      try blob.checkBlob()
      guard isPut, value.isEmpty else { throw FormatError("a large value where none may be") }
    }
    guard labels.count <= Limits.labelsPerEntry else {
      throw FormatError("\(labels.count) labels; at most \(Limits.labelsPerEntry) are allowed")
    }
    if !labels.isEmpty { try EntryLabel.check(labels) }
    if let attachment {
      try attachment.check()
      guard isPut else { throw FormatError("an attachment where none may be") }
    }
    let hashBytes = hash?.count ?? 0
    guard hashBytes <= Limits.hashBytes else {
      throw FormatError("a hash has \(hashBytes) bytes; at most \(Limits.hashBytes) are allowed")
    }
  }
}

extension AttachmentReference {
  package func checkBlob() throws(FormatError) {
    try check()
    guard length > SyncContent.mostInlineBytes, length <= Limits.valueBytes else {
      throw FormatError(
        "a value that travels apart has \(length) bytes; \(SyncContent.mostInlineBytes + 1) to "
          + "\(Limits.valueBytes) are allowed")
    }
  }
}

extension Timestamp {
  fileprivate func check() throws(FormatError) {
    guard nanoseconds < 1_000_000_000 else { throw FormatError("a time is out of bounds") }
  }
}

extension PushedChange {
  fileprivate func check() throws(FormatError) {
    // Its numbers are its own matter: the handler rejects the change, and takes the others.
    try WireMessage.check(key: key)
    try content.check(isPut: kind == .put)
    try time?.check()
  }
}

extension FeedEntry {
  fileprivate func check() throws(FormatError) {
    try position.check()
    try operation.check()
    if kind == .own {
      guard key.isEmpty else { throw FormatError("a key where none may be") }
    } else {
      try WireMessage.check(key: key)
    }
    try content.check(isPut: kind == .put)
    try time?.check()
  }
}

extension DigestRequest {
  /// In order and apart, so that no key is looked at twice for one answer.
  fileprivate func checkPaths() throws(FormatError) {
    guard (1...WireLimits.digestPaths).contains(paths.count) else {
      throw FormatError(
        "\(paths.count) parts of a digest; 1 to \(WireLimits.digestPaths) are allowed")
    }
    for path in paths {
      guard path.count <= WireLimits.pathBytes else {
        throw FormatError(
          "a path has \(path.count) bytes; at most \(WireLimits.pathBytes) are allowed")
      }
    }
    for (path, next) in zip(paths, paths.dropFirst()) {
      guard path.lexicographicallyPrecedes(next), !next.starts(with: path) else {
        throw FormatError("parts of a digest are not in order, or one lies within another")
      }
    }
  }
}

extension DigestAnswer {
  fileprivate func check() throws(FormatError) {
    try position.check()
    try range.check()
    guard (1...WireLimits.digestPaths).contains(parts.count) else {
      throw FormatError(
        "\(parts.count) parts of a digest; 1 to \(WireLimits.digestPaths) are allowed")
    }
    var rows = 0
    for part in parts {
      try part.total.check()
      switch part.content {
      case .sums(let sums):
        guard sums.count == WireLimits.digestParts else {
          throw FormatError("a part has \(WireLimits.digestParts) parts")
        }
        for sum in sums { try sum.check() }
      case .keys(let keys):
        rows += keys.count
        try WireMessage.check(rows: rows)
        for key in keys {
          try key.position.check()
          try WireMessage.check(key: key.key)
        }
      }
    }
  }
}

extension DigestSum {
  fileprivate func check() throws(FormatError) {
    guard keys > 0 || (low == 0 && high == 0) else { throw FormatError("a sum over no keys") }
  }
}
