/// A file that holds disk space in reserve. When the disk is full the store gives the space back
/// and uses it to close cleanly or to compact, which makes room but needs some room first.
/// The content means nothing and is never read. Errors are swallowed: a store without ballast is
/// whole. ``BallastKeeper`` decides when space is set aside and given back.
struct Ballast: Sendable {
  private static let leastBytes = 1 << 20
  private static let mostBytes = 64 << 20
  /// With so much free space besides, writers need not wait while the ballast grows.
  fileprivate static let plenty = 256 << 20

  let fileSystem: any FileSystem
  let storePath: String

  private var path: String { storePath + "/" + StoreLayout.ballast }

  /// How much is to be set aside for a log: 5 % of it, from 1 to 64 MiB.
  /// - Parameter least: a smaller log gets no ballast.
  static func wanted(forLog bytes: Int, from least: Int) -> Int {
    bytes < least ? 0 : min(max(bytes / 20, leastBytes), mostBytes)
  }

  /// Bytes that are set aside now.
  var bytes: Int {
    guard let file = try? fileSystem.open(path, .read) else { return 0 }
    defer { file.close() }
    return (try? file.length()) ?? 0
  }

  /// Makes the file `wanted` bytes long, or as long as the disk allows; up to twice is left alone.
  /// - Parameter isProven: whether this process has allocated the file since it opened the store.
  ///   In a copied store the file may be a hole with no disk space behind it, so it is made anew.
  func provide(_ wanted: Int, isProven: Bool) {
    let present = bytes
    if isProven || present == 0, present >= wanted, present / 2 <= wanted { return }
    let opened = try? fileSystem.open(path, .readWrite)
    guard let file = opened ?? (try? fileSystem.open(path, .create)) else { return }
    defer { file.close() }
    let kept = isProven ? min(present, wanted) : 0
    do { try file.truncate(to: kept) } catch { return }
    var size = wanted
    while size > kept {
      do { return try file.allocate(to: size) } catch { try? file.truncate(to: kept) }
      // Less is tried next: as much as was there before, then half as much each time.
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
}

/// The owner of a store's ballast, the file that holds disk space in reserve: it gives the space up
/// for a step that fails on a full disk, and sets it aside again later. Its lock is never held
/// while it touches the disk or takes another lock.
final class BallastKeeper: StateOwner {
  let store: StoreContext
  private let monitor = Monitor(State())
  /// Whether a step uses the ballast's space: ordinary writes, which would take it, are refused.
  let isInUse = AtomicFlag()

  private struct State {
    /// Bytes of log that had been written when space was last set aside.
    var loggedBefore = 0
    /// Whether a step may have used the ballast up since.
    var mayLack = false
    /// Whether this process has allocated the file since it opened the store.
    var isProven = false
    /// How many steps with the ballast's space are under way.
    var users = 0
    /// Whether a thread is setting space aside; only one does at a time.
    var isBeingProvided = false
  }

  init(_ store: StoreContext) { self.store = store }

  var file: Ballast { Ballast(fileSystem: fileSystem, storePath: path) }

  /// Takes a step. When the disk is full it gives the ballast up and takes the step once more, so
  /// the step must be such that it can begin again.
  func give<R>(to step: () throws(TidemarkError) -> R) throws(TidemarkError) -> R {
    do { return try step() } catch {
      guard error.code == .noSpace else { throw error }
      // Writes are refused before the space is free, and `provide` must not take it back.
      use(1)
      defer { use(-1) }
      wait()
      guard file.release() else { throw error }
      return try step()
    }
  }

  private func use(_ change: Int) {
    monitor.withLock { state in
      state.users += change
      isInUse.isSet = state.users > 0
      state.mayLack = true
    }
  }

  /// Whether ``provide(forLog:logged:mayShrink:exclusively:)`` is to be called.
  func isDue(at logged: Int) -> Bool {
    monitor.withLock { state in
      state.mayLack || logged - state.loggedBefore >= configuration.ballastFromLogBytes
    }
  }

  /// Sets as much space aside as a log calls for, unless nothing was written since the last time, a
  /// step uses the ballast, or another thread is at it. A full disk is no error.
  /// - Parameters:
  ///   - mayShrink: whether there may be more set aside than the log calls for.
  ///   - exclusively: calls its argument under the writer's lock: while the file is allocated anew,
  ///     a write could take the space that is free for a moment.
  func provide(forLog log: Int, logged: Int, mayShrink: Bool, exclusively: (() -> Void) -> Void) {
    let wanted = Ballast.wanted(forLog: log, from: configuration.ballastFromLogBytes)
    let isProven = monitor.withLock { state -> Bool? in
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
      exclusively { if !isInUse.isSet { file.provide(wanted, isProven: isProven) } }
    } else {
      file.provide(wanted, isProven: isProven)
    }
    monitor.withLock { $0.isBeingProvided = false }
    monitor.broadcast()
  }

  /// Waits until no thread sets space aside. Closing waits before it lets go of the store's lock,
  /// since another process may write the file from then on.
  func wait() { monitor.wait { !$0.isBeingProvided } }

  /// After a resume the ballast file counts as unproven: another process may have changed it.
  func startOver() { monitor.withLock { $0.isProven = false } }
}
