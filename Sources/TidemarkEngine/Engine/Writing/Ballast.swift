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

/// The ballast's part of the writer's state: when it is to be looked at, and who is using it up.
struct BallastState {
  /// Bytes of log written since the ballast was looked at.
  private var bytesSince = 0
  /// Whether this opening has set aside what the ballast holds.
  private(set) var isProven = false
  /// How many are at a step for which the ballast was given up.
  private var users = 0
  /// Whether space is being set aside beside those who write.
  var isBeingProvided = false

  init() {}

  /// The state after the store was read anew: somebody else may have set aside what is there.
  init(goingOnFrom former: BallastState) { bytesSince = former.bytesSince }

  /// Whether nobody has to do with it.
  var isFree: Bool { !isInUse && !isBeingProvided }
  var isInUse: Bool { users > 0 }

  func isDue(from bytes: Int) -> Bool { bytesSince >= bytes }

  mutating func noteWritten(_ bytes: Int) { bytesSince += bytes }

  mutating func noteProven() { isProven = true }

  /// - Returns: whether anything was written since the last turn.
  mutating func takeTurn() -> Bool {
    defer { bytesSince = 0 }
    return bytesSince > 0
  }

  mutating func beginUse() { users += 1 }

  /// Bytes left over are to be set aside again.
  mutating func endUse(dueFrom bytes: Int) {
    users -= 1
    bytesSince = max(bytesSince, bytes, 1)
  }
}

extension LogWriter {
  /// Gives some of the space back that is set aside for a full disk.
  /// - Returns: whether there was any.
  package func releaseBallast(_ bytes: Int) -> Bool { ballast.release(bytes) }

  var ballast: Ballast { Ballast(fileSystem: fileSystem, storePath: path) }

  /// Takes a step, and takes it once more with the ballast's space when the disk is full.
  ///
  /// Meanwhile ordinary writes are refused, which would take that space.
  func withBallast<R>(
    _ step: () throws(TidemarkError) -> R
  ) throws(TidemarkError) -> R {
    do { return try step() } catch {
      guard error.code == .noSpace else { throw error }
      writing.withLock { $0.ballast.beginUse() }
      defer { writing.withLock { $0.ballast.endUse(dueFrom: configuration.ballastFromLogBytes) } }
      guard ballast.release() else { throw error }
      return try step()
    }
  }

  /// Sets as much space aside as the log calls for, when something was written since the last
  /// time. That there is none is no error.
  /// - Parameter mayShrink: whether there may be more set aside than the log calls for.
  func provideBallast(mayShrink: Bool = false) {
    let log = reader.snapshot.usedBytes
    let wanted = Ballast.wanted(forLog: log, from: configuration.ballastFromLogBytes)
    let free = freeBytes ?? 0
    let isProven = writing.withLock { state -> Bool? in
      guard state.lock != nil, !state.isSuspended, state.ballast.isFree else { return nil }
      // Once a store is closed nothing is allocated any more, also not what was given back.
      guard state.ballast.takeTurn() || (mayShrink && !state.isClosed) else { return nil }
      guard wanted > 0 || mayShrink else { return nil }
      defer { state.ballast.noteProven() }
      guard free < Ballast.plenty + wanted else {
        state.ballast.isBeingProvided = true
        return state.ballast.isProven
      }
      // Nobody writes meanwhile, who could take what is given back for a moment.
      ballast.provide(wanted, isProven: state.ballast.isProven)
      return nil
    }
    guard let isProven else { return }
    ballast.provide(wanted, isProven: isProven)
    writing.withLock { $0.ballast.isBeingProvided = false }
    writing.broadcast()
  }

  /// Waits until nobody sets space aside: with the store's lock others may do that.
  func waitForBallast() { writing.wait { !$0.ballast.isBeingProvided } }

  /// Whether so much was written that more space is to be set aside.
  var ballastIsDue: Bool {
    writing.withLock { $0.ballast.isDue(from: configuration.ballastFromLogBytes) }
  }
}
