public import Tidemark

#if canImport(UIKit)
  internal import UIKit
#endif

/// Suspends a store when its app leaves the screen, and resumes the store when the app comes back.
/// Apps of SwiftUI call `suspendsStore` on their scene, others ``leave()`` and ``enter()``.
@MainActor
public final class StoreSuspension {
  private let store: Store
  private let onError: @MainActor (any Error) -> Void
  private var isAway = false
  private var last: Task<Void, Never>?

  /// Creates a suspension for a store. It does nothing until you call ``leave()``.
  /// - Parameters:
  ///   - store: the store to suspend and resume.
  ///   - onError: called with the errors of suspending, after which the store is suspended all the
  ///     same, and with those of resuming, after which the store stays suspended.
  public init(_ store: Store, onError: @escaping @MainActor (any Error) -> Void = { _ in }) {
    (self.store, self.onError) = (store, onError)
  }

  /// Suspends the store. iOS keeps the app awake for it as long as it can.
  public func leave() {
    isAway = true
    step { store in
      #if canImport(UIKit)
        let (results, done) = AsyncStream<Result<Void, TidemarkError>>.makeStream()
        ProcessInfo.processInfo.performExpiringActivity(withReason: "closing the store") { _ in
          // The system may call this twice, the second time when the time is up.
          done.yield(Result { () throws(TidemarkError) in try store.blocking.suspend() })
          done.finish()
        }
        for await result in results { return try result.get() }
      #else
        try await store.suspend()
      #endif
    }
  }

  /// Resumes the store. While another process has the store, such as an extension, this tries again
  /// five times a second until ``leave()``.
  public func enter() {
    isAway = false
    step { [weak self] store in
      while self?.isAway == false {
        do { return try await store.resume() } catch let error as TidemarkError {
          guard error.code == .locked else { throw error }
        }
        try await Task.sleep(for: .milliseconds(200))
      }
    }
  }

  /// Does one step after the other, so that the last one decides.
  private func step(_ work: @escaping @MainActor (Store) async throws -> Void) {
    last = Task { [before = last, store, onError] in
      await before?.value
      do { try await work(store) } catch { onError(error) }
    }
  }
}
