internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension ResponseShelf {
  /// Keeps a response, a new one or a stored one with fresh fields; its parts stand there already.
  /// - Parameter stamp: from before it was asked for.
  /// - Returns: false where something was said since, or where it cannot be kept.
  func keep(
    _ response: StoredResponse, _ attachment: StagedAttachment?, of address: HTTPAddress,
    _ headers: [String: String], since stamp: Stamp
  ) async throws(TidemarkError) -> Bool {
    guard let key = try await place(response, address, headers, since: stamp) else { return false }
    return try await put(key, response, attachment, address, since: stamp) {
      () throws(TidemarkError) in
      try self.isCurrent(key, stamp, address)
    }
  }

  /// Keeps a stored response with fresh fields, which may say that it stands elsewhere now.
  func renew(
    _ found: Found, of address: HTTPAddress, _ headers: [String: String], since stamp: Stamp
  ) async throws(TidemarkError) -> Bool {
    var attachment: StagedAttachment?
    if let reference = found.attachment {
      attachment = try cache.store.staged(reference)
      guard attachment != nil else { return false }
    }
    if found.response.parts != nil {
      // Parts are found by the key of their response.
      let key = try await place(found.response, address, headers, since: stamp)
      guard key == found.key else {
        try await remove([found.key])
        return false
      }
    }
    return try await keep(found.response, attachment, of: address, headers, since: stamp)
  }

  /// The key that a response is to have, whose list of variants has it then.
  /// - Returns: nil where an answer that was asked for later stands there, or where the response
  ///   cannot be kept.
  private func place(
    _ response: StoredResponse, _ address: HTTPAddress, _ headers: [String: String],
    since stamp: Stamp, isPart: Bool = false
  ) async throws(TidemarkError) -> Key? {
    guard let vary = Vary(response), response.encoded() != nil else {
      try await void(address)
      return nil
    }
    let key = Self.key(address)
    let former = try cache.peek(key).flatMap { Variants($0.value) }
    let isKnown = former?.vary == vary
    let list = vary.names.isEmpty ? nil : isKnown ? former : Variants(vary: vary)
    let target = list?.key(key, vary.selecting(headers)) ?? key
    let watched = isKnown ? target : key
    let joins = isPart ? isSame(response, try self.response(watched)) : false
    guard try isCurrent(joins ? nil : watched, stamp, address) else { return nil }
    if !isKnown { try await remove(former?.keys(key) ?? []) }
    guard var list else { return target }
    let (isNew, dropped) = list.add(target, after: key, most: max(1, policy.variants))
    guard isNew else { return target }
    // A response that stood there alone goes with its parts.
    let parts = try parts(key).map { Self.key(of: $0, key) }
    let isPlaced = try await put(key, list.encoded(), nil, address, since: stamp) {
      () throws(TidemarkError) in
      try self.isCurrent(isKnown ? nil : key, stamp, address)
    }
    guard isPlaced else { return nil }
    try await remove(dropped + parts)
    return target
  }

  private func response(_ key: Key) throws(TidemarkError) -> StoredResponse? {
    try cache.peek(key).flatMap { StoredResponse($0.value) }
  }

  /// Whether two answers are of one content, byte by byte (RFC 9111, 3.4).
  private func isSame(_ one: StoredResponse, _ other: StoredResponse?) -> Bool {
    guard let other, let tag = one.headers["etag"], Preconditions.isStrong(tag) else {
      return false
    }
    return tag == other.headers["etag"] && one.length == other.length && other.status == 200
  }

  // MARK: Parts

  /// Times that a response is read again which others add parts to.
  private static let mostAttempts = 8

  /// Keeps a part of a body, beside the others of the same content.
  /// - Parameter response: the response as it is as a whole.
  func keep(
    _ range: Range<Int>, _ bytes: [UInt8], _ attachment: StagedAttachment?,
    of response: StoredResponse, _ address: HTTPAddress, _ headers: [String: String],
    since stamp: Stamp
  ) async throws(TidemarkError) -> Bool {
    guard let key = try await place(response, address, headers, since: stamp, isPart: true) else {
      return false
    }
    let part = ContentPart(range: range, number: UInt64.random(in: .min ... .max))
    let partKey = Self.key(of: part, key)
    guard try await put(partKey, bytes, attachment, address, since: stamp) else { return false }
    for _ in 0..<Self.mostAttempts {
      let sequence = try cache.sequence(of: key)
      let former = try self.response(key)
      let joins = isSame(response, former)
      if joins, former?.parts == nil { break }
      guard try isCurrent(joins ? nil : key, stamp, address) else { break }
      var next = response
      if joins, let former {
        next = former
        next.freshen(
          response.headers, requestTime: response.requestTime, responseTime: response.responseTime)
      }
      var parts = next.parts ?? ContentParts()
      parts.add(part)
      next.parts = parts
      if try await replace(key, at: sequence, next, nil, address, since: stamp) {
        try await arrange(key, address, since: stamp)
        return true
      }
    }
    try await remove([partKey])
    return false
  }

  private func replace(
    _ key: Key, at sequence: UInt64, _ response: StoredResponse, _ attachment: StagedAttachment?,
    _ address: HTTPAddress, since stamp: Stamp
  ) async throws(TidemarkError) -> Bool {
    try await put(key, response, attachment, address, since: stamp) {
      () throws(TidemarkError) in try self.cache.sequence(of: key) == sequence
    }
  }

  /// Makes one of parts that are the whole, or that are too many.
  private func arrange(
    _ key: Key, _ address: HTTPAddress, since stamp: Stamp
  ) async throws(TidemarkError) {
    let sequence = try cache.sequence(of: key)
    guard var response = try self.response(key), var parts = response.parts,
      let total = response.length
    else { return }
    if parts.end(from: 0) >= total {
      guard let content = try await joined(key, response, 0..<total) else { return }
      (response.parts, response.body) = (nil, content.bytes)
      _ = try await replace(
        key, at: sequence, response, content.attachment, address, since: stamp)
      return
    }
    let surplus = parts.surplus
    guard let first = surplus.first, let last = surplus.last else { return }
    for part in surplus { parts.remove(part) }
    if surplus.count > 1 {
      let range =
        first.range.lowerBound..<max(first.range.upperBound, last.range.upperBound)
      let part = ContentPart(range: range, number: UInt64.random(in: .min ... .max))
      guard let content = try await joined(key, response, range),
        try await put(
          Self.key(of: part, key), content.bytes, content.attachment, address, since: stamp)
      else { return }
      parts.add(part)
    }
    response.parts = parts
    _ = try await replace(key, at: sequence, response, nil, address, since: stamp)
  }

  /// A range of a body whose parts are here.
  private func joined(
    _ key: Key, _ response: StoredResponse, _ range: Range<Int>
  ) async throws(TidemarkError) -> (bytes: [UInt8], attachment: StagedAttachment?)? {
    guard let content = try content(key, response, nil),
      content.end(from: range.lowerBound) >= range.upperBound
    else { return nil }
    let keeper = ResponseKeeper(cache.store, policy)
    do { try await content.forEach(in: range) { keeper.take($0) } } catch {
      keeper.cancel()
      throw error as? TidemarkError ?? TidemarkError(.cancelled, "the task was cancelled")
    }
    return keeper.finish(length: range.count)
  }
}
