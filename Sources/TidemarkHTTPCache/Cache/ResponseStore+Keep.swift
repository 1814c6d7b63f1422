internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension ResponseStore {
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
    if found.response.isPartial {
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
    let target = list?.key(key, headers) ?? key
    let watched = isKnown ? target : key
    let joins = isPart ? isSame(response, try self.response(watched)) : false
    guard try isCurrent(joins ? nil : watched, stamp, address) else { return nil }
    if !isKnown { try await remove(former?.keys(key) ?? []) }
    guard var list else { return target }
    let (isNew, dropped) = list.add(target, after: key, most: max(1, policy.variants))
    guard isNew else { return target }
    // A response that stood there alone goes with its parts.
    let parts = try partKeys(key)
    let isPlaced = try await put(key, list.encoded(), nil, address, since: stamp) {
      () throws(TidemarkError) in
      try self.isCurrent(isKnown ? nil : key, stamp, address)
    }
    guard isPlaced else { return nil }
    try await remove(dropped + parts)
    return target
  }

  /// Whether two answers are of one content, byte by byte (RFC 9111, 3.4).
  private func isSame(_ one: StoredResponse, _ other: StoredResponse?) -> Bool {
    guard let other, let tag = one.headers["etag"], Preconditions.isStrong(tag) else {
      return false
    }
    return tag == other.headers["etag"] && one.length == other.length && other.status == 200
  }

  // MARK: Parts

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
    let part = Self.key(of: range, response, key)
    guard try await put(part, bytes, attachment, address, since: stamp) else { return false }
    let sequence = try cache.sequence(of: key)
    let former = try self.response(key)
    let joins = isSame(response, former)
    var next = response
    if joins, let former {
      next = former
      next.freshen(
        response.headers, requestTime: response.requestTime, responseTime: response.responseTime)
    }
    if !joins || next.isPartial {
      next.isPartial = true
      _ = try await put(key, next, nil, address, since: stamp) { () throws(TidemarkError) in
        joins
          ? try self.cache.sequence(of: key) == sequence
          : try self.isCurrent(key, stamp, address)
      }
    }
    // A part is of use beside others of its content, whichever came first.
    guard let there = try self.response(key), there.isPartial, isSame(response, there) else {
      try await remove([part])
      return false
    }
    try await arrange(key, address, since: stamp)
    return true
  }

  /// Makes one of parts that are the whole, or that are too many.
  private func arrange(
    _ key: Key, _ address: HTTPAddress, since stamp: Stamp
  ) async throws(TidemarkError) {
    let sequence = try cache.sequence(of: key)
    guard let response = try self.response(key), response.isPartial, let total = response.length
    else { return }
    if try parts(key, response).end(from: 0) >= total {
      guard let content = try await joined(key, response, 0..<total) else { return }
      var whole = response
      (whole.isPartial, whole.body) = (false, content.bytes)
      _ = try await put(key, whole, content.attachment, address, since: stamp) {
        () throws(TidemarkError) in try self.cache.sequence(of: key) == sequence
      }
      return
    }
    for _ in 0..<ContentParts.most {
      let surplus = ContentParts.surplus(try parts(key, response))
      guard let first = surplus.first, let last = surplus.last else { return }
      let range = first.lowerBound..<max(first.upperBound, last.upperBound)
      if surplus.count > 1 {
        guard let content = try await joined(key, response, range),
          try await put(
            Self.key(of: range, response, key), content.bytes, content.attachment, address,
            since: stamp)
        else { return }
      }
      // One that had all of the other is what they became.
      let gone = surplus.count > 1 ? surplus.filter { $0 != range } : surplus
      try await remove(gone.map { Self.key(of: $0, response, key) })
    }
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
      throw error as? TidemarkError ?? TidemarkError(.cancelled, "the task was cancelled")
    }
    return keeper.finish(length: range.count)
  }
}
