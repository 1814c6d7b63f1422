/// Space that is set aside for the day on which the disk is full.
///
/// A full disk must not keep anybody from closing a store cleanly, or from compacting it, which
/// makes room; but both need some room first. The file says nothing and is never read: whatever
/// stands there is as good as nothing.
struct Ballast: Sendable {
  private static let leastBytes = 1 << 20
  private static let mostBytes = 64 << 20
  /// With so much space besides nobody needs to wait while some of it is set aside.
  fileprivate static let plenty = 256 << 20

  let fileSystem: any FileSystem
  let storePath: String

  private var path: String { storePath + "/" + StoreLayout.ballast }

  /// How much is to be set aside for a log: 5 % of it, from 1 to 64 MiB.
  /// - Parameters:
  ///   - bytes: the log's.
  ///   - least: a smaller log gets none.
  static func wanted(forLog bytes: Int, from least: Int) -> Int {
    bytes < least ? 0 : min(max(bytes / 20, leastBytes), mostBytes)
  }

  /// Bytes that are set aside now.
  var bytes: Int {
    guard let file = try? fileSystem.open(path, .read) else { return 0 }
    defer { file.close() }
    return (try? file.length()) ?? 0
  }

  /// Sets space aside, or a part of it where there is no more; what is about right stays as it
  /// is.
  /// - Parameter isProven: whether this opening has set aside what is there. In a copy of the
  ///   store there may be nothing on the disk behind it.
  func provide(_ wanted: Int, isProven: Bool) {
    let present = bytes
    if isProven || present == 0, present >= wanted, present / 2 <= wanted { return }
    guard let file = openOrCreate() else { return }
    defer { file.close() }
    let kept = isProven ? min(present, wanted) : 0
    do { try file.truncate(to: kept) } catch { return }
    var size = wanted
    while size > kept {
      do { return try file.allocate(to: size) } catch { try? file.truncate(to: kept) }
      let less = present < size && present >= Self.leastBytes ? present : size / 2
      size = size > Self.leastBytes ? max(less, Self.leastBytes) : 0
    }
  }

  /// Gives space back to the disk.
  /// - Parameter count: how much; without it all that there is.
  /// - Returns: whether there was any.
  func release(_ count: Int = .max) -> Bool {
    let present = bytes
    guard present > 0, let file = try? fileSystem.open(path, .readWrite) else { return false }
    defer { file.close() }
    do { try file.truncate(to: max(0, present - count)) } catch { return false }
    return true
  }

  private func openOrCreate() -> (any File)? {
    if let file = try? fileSystem.open(path, .readWrite) { return file }
    return try? fileSystem.open(path, .create)
  }
}

/// The owner of the ballast: it is given up for steps that a full disk would keep from being taken,
/// and set aside again.
final class BallastKeeper: StateOwner {
  let store: StoreContext
  private let keeping = Monitor(State())
  /// Whether somebody is at a step for which the ballast was given up: ordinary writes, which would
  /// take that space, are refused meanwhile.
  let isInUse = AtomicFlag()

  private struct State {
    /// Bytes of log that had been written when the ballast was looked at.
    var loggedBefore = 0
    /// Whether there may be space to be set aside again.
    var mayLack = false
    /// Whether this opening has set aside what the ballast holds.
    var isProven = false
    /// How many are at a step for which the ballast was given up.
    var users = 0
    /// Whether space is being set aside beside those who write.
    var isBeingProvided = false
  }

  init(_ store: StoreContext) { self.store = store }

  private var ballast: Ballast { Ballast(fileSystem: fileSystem, storePath: path) }

  /// Bytes that are set aside now.
  var bytes: Int { ballast.bytes }

  /// Gives space back to the disk.
  /// - Returns: whether there was any.
  func release(_ bytes: Int = .max) -> Bool { ballast.release(bytes) }

  /// Takes a step, and takes it once more with the ballast's space when the disk is full.
  func give<R>(to step: () throws(TidemarkError) -> R) throws(TidemarkError) -> R {
    do { return try step() } catch {
      guard error.code == .noSpace else { throw error }
      use(1)
      defer { use(-1) }
      wait()
      guard ballast.release() else { throw error }
      return try step()
    }
  }

  private func use(_ change: Int) {
    keeping.withLock { state in
      state.users += change
      isInUse.isSet = state.users > 0
      state.mayLack = true
    }
  }

  /// Whether so much was written that more space is to be set aside.
  /// - Parameter logged: bytes of log that were written so far.
  func isDue(at logged: Int) -> Bool {
    keeping.withLock { state in
      state.mayLack || logged - state.loggedBefore >= configuration.ballastFromLogBytes
    }
  }

  /// Sets as much space aside as a log calls for, when something was written since the last time.
  /// That there is none is no error.
  /// - Parameters:
  ///   - log: bytes of the log.
  ///   - logged: bytes of log that were written so far.
  ///   - mayShrink: whether there may be more set aside than the log calls for.
  ///   - exclusively: calls its argument while nobody writes, who could take what is given back for
  ///     a moment.
  func provide(
    forLog log: Int, logged: Int, mayShrink: Bool, exclusively: (() -> Void) -> Void
  ) {
    let wanted = Ballast.wanted(forLog: log, from: configuration.ballastFromLogBytes)
    let isProven = keeping.withLock { state -> Bool? in
      guard state.users == 0, !state.isBeingProvided else { return nil }
      guard logged > state.loggedBefore || state.mayLack || mayShrink else { return nil }
      (state.loggedBefore, state.mayLack) = (logged, false)
      guard wanted > 0 || mayShrink else { return nil }
      defer { state.isProven = true }
      state.isBeingProvided = true
      return state.isProven
    }
    guard let isProven else { return }
    if freeBytes ?? 0 < Ballast.plenty + wanted {
      exclusively { if !isInUse.isSet { ballast.provide(wanted, isProven: isProven) } }
    } else {
      ballast.provide(wanted, isProven: isProven)
    }
    keeping.withLock { $0.isBeingProvided = false }
    keeping.broadcast()
  }

  /// Waits until nobody sets space aside: with the store's lock others may do that.
  func wait() { keeping.wait { !$0.isBeingProvided } }

  /// The store was read anew: somebody else may have set aside what is there.
  func startOver() { keeping.withLock { $0.isProven = false } }
}
