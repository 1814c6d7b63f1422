internal import Tidemark
internal import TidemarkEngine
internal import TidemarkTestKit

/// Promises of the caches that stand in the same stores as what is replicated.
extension SyncOracle {
  /// Nothing of a cache is ever seen outside of the store that it is in.
  func checkIsNoCachesDoing(_ entry: ObservedEntry, _ place: String) throws {
    guard !entry.isCached, !cachedContents.contains(entry.content) else {
      throw BrokenPromise("\(place) has what a cache did to \(name(entry.key))")
    }
  }

  /// Takes an entry that is a cache's doing.
  /// - Parameter isNew: whether it was not there when the log was looked at last; else it may be
  ///   what compaction has left of several.
  /// - Returns: false for an entry of the user's or of others.
  func isOfCache(_ entry: ObservedEntry, on device: Int, isNew: Bool = true) throws -> Bool {
    guard entry.isCached else {
      try checkIsNoCachesDoing(entry, "the replica d\(device)")
      cacheBooks[device].present[entry.key] = nil
      return false
    }
    switch entry.kind {
    case .put:
      guard cacheBooks[device].values[entry.content]?.key == entry.key, entry.origin == nil else {
        throw BrokenPromise("d\(device) caches at \(name(entry.key)) what nobody gave it")
      }
      cacheBooks[device].present[entry.key] = entry.content
    case .evict:
      guard !isNew || cacheBooks[device].present[entry.key] != nil else {
        throw BrokenPromise("d\(device) has evicted \(name(entry.key)), which its cache has not")
      }
      cacheBooks[device].present[entry.key] = nil
    case .delete, .loser:
      throw BrokenPromise("d\(device) has a cached \(entry.kind) of \(name(entry.key))")
    }
    return true
  }

  /// Whether a key shows a user's value, here or elsewhere written.
  func isOwned(_ key: [UInt8], on device: Int) -> Bool {
    (books[device].newest[key]?.content ?? .deleted) != .deleted
  }

  /// A user touches a key, which a cache may have.
  func noteTouch(of key: [UInt8], on device: Int) {
    guard let content = cacheBooks[device].present[key] else { return }
    cacheBooks[device].values[content]?.renewedByUser()
  }

  // MARK: Reading

  /// A cache shows a key as it was given it, for no longer valid than was said, and reading does
  /// not change that.
  func checkRead(
    _ key: String, of cache: Cache<[UInt8]>, on device: SimulatedDevice
  ) throws {
    let full = Array((SimulatedDevice.cachePrefix + key).utf8)
    let place = "d\(device.index): the cache's \(name(full))"
    let entry = try cache.entry(forKey: key)
    let again = try cache.entry(forKey: key)
    guard entry?.validUntil == again?.validUntil, entry?.validated == again?.validated,
      entry?.isValid == again?.isValid
    else { throw BrokenPromise("\(place) is valid for another time after it was read") }
    let shown = entry.map { Content($0.value, $0.labels.map(\.bytes)) }
    guard try cache.value(forKey: key) == entry?.value else {
      throw BrokenPromise("\(place) is read in two ways")
    }
    guard let (content, value) = cacheBooks[device.index].value(full) else {
      let newest = books[device.index].newest[full]?.content ?? .deleted
      guard newest == shown ?? .deleted, entry?.isOwned ?? true else {
        throw BrokenPromise("\(place) is not what the user has written")
      }
      return
    }
    guard let entry, !entry.isOwned, shown == content else {
      throw BrokenPromise("\(place) is not what it was given")
    }
    if value.isRenewedByUser { return }
    let now = device.clock.now().milliseconds
    let fits = value.possible.contains {
      $0.end == entry.validUntil?.milliseconds && $0.isValid(at: now) == entry.isValid
    }
    guard fits else {
      throw BrokenPromise(
        "\(place) is valid until \(entry.validUntil?.milliseconds ?? 0), \(entry.isValid) at "
          + "\(now), which nobody has said")
    }
  }

  /// A cache shows all that it was given and has not given up, and nothing else.
  func checkCache(of device: SimulatedDevice) throws {
    var present: [[UInt8]: Content] = [:]
    let scan = EngineScan(
      device.engine.reader, ScanQuery(prefix: Array(SimulatedDevice.cachePrefix.utf8)),
      view: try device.engine.reader.view())
    while true {
      let page = try scan.nextPage(limit: 200)
      if page.isEmpty { break }
      for row in page {
        guard try device.engine.reader.slot(ofKey: row.key.rawSpan)?.size.isCached ?? false else {
          continue
        }
        let info = try device.engine.reader.info(device.engine.reader.entry(at: row.sequence))
        present[row.key] = Content(try device.engine.value(ofKey: row.key) ?? [], info.labels)
      }
    }
    guard present == cacheBooks[device.index].present else {
      throw BrokenPromise(
        "the cache of d\(device.index) has \(present.count) values, and not the "
          + "\(cacheBooks[device.index].present.count) that it kept")
    }
  }
}
