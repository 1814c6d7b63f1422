/// The outcome of a sweep over crashes of a program that uses the store.
package struct SweepReport: Sendable {
  package var crashes = 0
  package var statesChecked = 0
  package var calls = 0
  /// Things that were found half way: items that were staged and not shown, objects that no index
  /// has yet.
  package var between = 0
  package var injected = InjectionCounts()
  package var traceHash: UInt64 = 0
}
