internal import Tidemark
internal import TidemarkEngine
internal import TidemarkTestKit

/// Programs that use a cache beside what they replicate.
extension SyncWorld {
  func useCache(_ event: SyncEvent, _ device: SimulatedDevice) throws {
    guard let cache = try device.cache() else { return }
    let key = "\(event.number(0) % 100)"
    switch event.kind {
    case .cachePut: try putCached(key, event, device, cache)
    case .cacheTouch, .cacheStale: try renew(key, event, device, cache)
    case .cacheRemove:
      let full = Array((SimulatedDevice.cachePrefix + key).utf8)
      let isThere = oracle.cacheBooks[device.index].present[full] != nil
      let isGone = try cache.blocking.remove(key)
      guard device.disk.isRunning else { return }
      try oracle.observe(device)
      guard isGone == isThere else {
        throw BrokenPromise("d\(device.index): to give up \(key) has returned \(isGone)")
      }
    case .cacheExpire: try expire(event.number(0), device, cache)
    default: break
    }
    guard device.disk.isRunning else { return }
    try oracle.observe(device)
    if event.kind != .cacheExpire { try oracle.checkRead(key, of: cache, on: device) }
  }

  // MARK: Writing

  private func putCached(
    _ key: String, _ event: SyncEvent, _ device: SimulatedDevice, _ cache: Cache<[UInt8]>
  ) throws {
    let full = Array((SimulatedDevice.cachePrefix + key).utf8)
    var value = Array("cached\(event.number(1))".utf8)
    value += Array(repeating: UInt8(ascii: "."), count: min(event.number(2), 10_000))
    let labels: [EntryLabel] = event.number(1) % 2 == 0 ? ["a"] : []
    let age = event.number(3) > 0 ? Duration.seconds(event.number(3) - 1) : nil
    let content = Content(value, labels.map(\.bytes))
    oracle.cachedContents.insert(content)
    let term = CacheBook.Term(
      validated: device.clock.now().milliseconds,
      age: (age ?? cache.policy.maxAge).components.seconds * 1000)
    let bytes = full.count + value.count
    oracle.cacheBooks[device.index].values[content] = CacheBook.Value(full, bytes: bytes, term)
    let isOwned =
      oracle.isOwned(full, on: device.index)
      || event.writes.contains { Array($0.key.utf8) == full }
    let knows = oracle.books[device.index].newest[full] != nil
    do {
      if event.writes.isEmpty {
        try cache.blocking.put(key, value, labels: labels, maxAge: age)
      } else {
        try putTogether(key, value, labels, age, event.writes, device)
      }
    } catch let error as TidemarkError where error.code == .conflict {
      report.count("cached puts refused")
      try oracle.observe(device)
      guard knows || isOwned else {
        throw BrokenPromise("d\(device.index) refuses to cache \(key), which nobody has written")
      }
      return
    }
    guard device.disk.isRunning else { return }
    try oracle.observe(device)
    guard !isOwned else {
      throw BrokenPromise("d\(device.index) caches over what the user has at \(key)")
    }
    let (count, fill) = oracle.cacheBooks[device.index].fill
    guard count <= cache.policy.capacity ?? .max, fill <= cache.policy.bytes ?? .max else {
      throw BrokenPromise("the cache of d\(device.index) has \(count) values, \(fill) bytes")
    }
  }

  /// Puts a cached value and what a user has written in one batch.
  private func putTogether(
    _ key: String, _ value: [UInt8], _ labels: [EntryLabel], _ age: Duration?,
    _ writes: [SyncWrite], _ device: SimulatedDevice
  ) throws {
    var batch = WriteBatch()
    for write in writes {
      let key = Array(write.key.utf8)
      oracle.noteWrite(key)
      let labels = write.labels == "-" ? [] : write.labels.map { EntryLabel("\($0)") }
      try batch.put(key, write.value(over: []), labels: labels)
    }
    let options = PutOptions(
      time: device.clock.now(), maxAge: age, storageClass: .cache)
    try batch.put(
      SimulatedDevice.cachePrefix + key, value, labels: labels, options: options)
    try device.write(batch)
  }

  private func renew(
    _ key: String, _ event: SyncEvent, _ device: SimulatedDevice, _ cache: Cache<[UInt8]>
  ) throws {
    let full = Array((SimulatedDevice.cachePrefix + key).utf8)
    let known = oracle.cacheBooks[device.index].value(full)
    let now = device.clock.now().milliseconds
    let isMark = event.kind == .cacheStale
    let age = event.number(1) > 0 ? Int64(event.number(1) - 1) * 1000 : nil
    let usual = cache.policy.maxAge.components.seconds * 1000
    let terms = (known?.value.possible ?? []).map { term in
      CacheBook.Term(
        validated: now, age: age ?? (term.isMarked ? usual : term.age), isMarked: isMark)
    }
    if let known { oracle.cacheBooks[device.index].values[known.content]?.add(terms) }
    var isThere = known != nil
    if isMark {
      try cache.blocking.markStale(keys: [Key(key)])
    } else {
      isThere = try cache.blocking.touch(key, maxAge: age.map { .milliseconds($0) })
    }
    guard device.disk.isRunning else { return }
    guard isThere == (known != nil) else {
      throw BrokenPromise("d\(device.index): to touch \(key) has returned \(isThere)")
    }
    if let known {
      oracle.cacheBooks[device.index].values[known.content]?.holds(last: terms.count)
    }
  }

  // MARK: Expiry

  private func expire(
    _ seconds: Int, _ device: SimulatedDevice, _ cache: Cache<[UInt8]>
  ) throws {
    let now = device.clock.now().milliseconds
    let before = oracle.cacheBooks[device.index]
    let count = try cache.blocking.removeStale(for: .seconds(seconds))
    guard device.disk.isRunning else { return }
    try oracle.observe(device)
    report.count("expired when asked for", count)
    for key in before.present.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      guard let value = before.value(key)?.value, !value.isRenewedByUser else { continue }
      let terms = value.possible
      let due = terms.count { !$0.isValid(at: now) && $0.end + Int64(seconds) * 1000 <= now }
      let isGone = oracle.cacheBooks[device.index].present[key] == nil
      guard isGone ? due > 0 : due < terms.count else {
        throw BrokenPromise(
          "d\(device.index): \(oracle.name(key)) \(isGone ? "is gone" : "stays") though it "
            + "\(isGone ? "was valid" : "was due")")
      }
    }
  }
}
