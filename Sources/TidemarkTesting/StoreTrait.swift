public import Testing
public import Tidemark

/// Gives each test a store in memory of its own, filled by a seed: as the trait of a test or of a
/// suite.
///
/// ```swift
/// @Suite(.store { store in try await store.put("note/1", "Buy milk") })
/// struct NoteTests {
///   @Test func reads() throws {
///     #expect(try Store.underTest.value(forKey: "note/1") != nil)
///   }
/// }
/// ```
/// Tests that run at the same time, and the arguments of one test, never share a store. It closes
/// when the test ends. An error of the seed fails the test.
public struct StoreTrait: TestTrait, SuiteTrait, TestScoping {
  @TaskLocal static var current: Store?

  let configuration: Store.Configuration
  let seed: @Sendable (Store) async throws -> Void

  /// True: when a suite has the trait, each of its tests gets a store.
  public var isRecursive: Bool { true }

  /// Opens a store, fills it, and runs the test with it. Swift Testing calls this.
  public func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    let store = try await Store.open(at: .inMemory, configuration: configuration)
    do {
      try await seed(store)
      try await Self.$current.withValue(store) { try await function() }
    } catch {
      try? await store.close()
      throw error
    }
    try await store.close()
  }
}

extension Trait where Self == StoreTrait {
  /// A store in memory for each test, which the test finds as `Store.underTest`.
  /// - Parameters:
  ///   - configuration: how the store is opened.
  ///   - seed: fills the store before the test runs.
  public static func store(
    _ configuration: Store.Configuration = Store.Configuration(),
    _ seed: @escaping @Sendable (Store) async throws -> Void = { _ in }
  ) -> Self {
    StoreTrait(configuration: configuration, seed: seed)
  }
}

extension Store {
  /// The store of the running test, which has the trait `.store`.
  /// - Throws: `invalidArgument` in a test without the trait, and in a detached task, which does
  ///   not inherit the test's values.
  public static var underTest: Store {
    get throws(TidemarkError) {
      guard let store = StoreTrait.current else {
        throw TidemarkError(
          .invalidArgument, "the test has no store: give it, or its suite, the trait .store")
      }
      return store
    }
  }
}
