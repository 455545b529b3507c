//! Command tools through a real engine: what a caller sees of a program.
#![cfg(unix)]

#[cfg(test)]
#[cfg(target_os = "linux")]
mod ahead;
#[cfg(test)]
mod artifacts;
#[cfg(test)]
mod begin;
#[cfg(test)]
mod ended;
#[cfg(test)]
mod ends;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod escapes;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod outliving;
#[cfg(test)]
mod reattachment;
#[cfg(test)]
mod results;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod stopped;
#[cfg(test)]
mod town;
